"""The parts that exports of all formats share: manifest, checksums, assets, host transforms, and the check after
writing.
"""
