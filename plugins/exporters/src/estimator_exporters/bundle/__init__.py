"""What exports of all formats share: the manifest, checksums, assets, host transforms, and the check after writing."""
