"""Packs: each byte verified, each element once, nothing read that is not needed, no hostile index accepted."""

from tests.mutants.record import Mutant

_ROOM = "estimator_core/_packs/"

MUTANTS = (
    Mutant(
        name="a-chunk-is-used-unverified",
        guarantee="rule 38",
        file=_ROOM + "fetch.py",
        old='if f"{zlib.crc32(part):08x}" != chunk.crc32:',
        new="if False:",
        tests=("test_a_damaged_byte_is_found_and_named",),
    ),
    Mutant(
        name="the-zeros-between-pieces-are-not-covered",
        guarantee="rule 38",
        file=_ROOM + "index.py",
        old="yield box, begin, self.end if number == last else end, crc",
        new="yield box, begin, end, crc",
        tests=("test_any_part_comes_back_bit_for_bit",),
    ),
    Mutant(
        name="all-verify-the-first-share",
        guarantee="rule 38",
        file=_ROOM + "fetch.py",
        old="if (end - 1) * parts // ends[-1] == part)",
        new="if (end - 1) * parts // ends[-1] == 0)",
        tests=("test_shares_verify_each_byte_once",),
    ),
    Mutant(
        name="a-process-decides-by-itself-what-is-intact",
        guarantee="rule 38",
        file="estimator_core/_checkpoint/newest.py",
        old='problems = [one for one in gather(processes, "restore-verified", problem) if one is not None]',
        new="problems = [one for one in [problem] if one is not None]",
        tests=("test_damage_in_the_share_of_one_makes_all_take_the_one_before",),
    ),
    Mutant(
        name="a-box-is-read-from-its-neighbour",
        guarantee="rule 38",
        file=_ROOM + "boxes.py",
        old="return tuple(slice(start - first, stop - first) for (start, stop), (first, _) in zip(box, of, strict=True))",
        new="return tuple(slice(0, stop - start) for (start, stop), (first, _) in zip(box, of, strict=True))",
        tests=("test_any_part_comes_back_bit_for_bit",),
    ),
    Mutant(
        name="two-devices-share-memory-of-the-host",
        guarantee="rule 38",
        file=_ROOM + "place.py",
        old="return parts[box].copy() if left[box] else parts.pop(box)",
        new="return parts[box][:0] if left[box] else parts.pop(box)",
        tests=("test_any_sharding_to_any_other_bit_for_bit",),
    ),
    Mutant(
        name="a-chunk-is-asked-for-by-each-device",
        guarantee="rule 38",
        file=_ROOM + "fetch.py",
        old="known = needed.setdefault((id(array.packs), chunk.pack, chunk.begin), chunk)",
        new="known = needed.setdefault((id(out), chunk.pack, chunk.begin), chunk)",
        tests=("test_any_sharding_to_any_other_bit_for_bit",),
    ),
    Mutant(
        name="pieces-need-not-cover-their-array",
        guarantee="rule 39",
        file=_ROOM + "boxes.py",
        old="        if start != at or stop <= start:\n            return False\n",
        new="",
        tests=("test_boxes_that_lack_or_repeat_an_element_do_not_tile", "test_it_is_refused_without_memory"),
    ),
    Mutant(
        name="pieces-may-overlap-in-a-pack",
        guarantee="rule 39",
        file=_ROOM + "index.py",
        old="if piece.offset != at or piece.end > begin:",
        new="if piece.end > begin:",
        tests=("test_it_is_refused_without_memory",),
    ),
    Mutant(
        name="a-long-line-is-parsed",
        guarantee="rule 39",
        file=_ROOM + "index.py",
        old="line = lines.readline(MAX_LINE)",
        new="line = lines.readline()",
        tests=("test_it_is_refused_without_memory",),
    ),
    Mutant(
        name="the-digest-of-an-index-is-not-compared",
        guarantee="rule 39",
        file=_ROOM + "index.py",
        old="if hashlib.sha256(tail).hexdigest() != entry.sha256:",
        new="if False:",
        tests=("test_a_digest_that_does_not_fit_is_refused",),
    ),
    Mutant(
        name="a-manifest-may-name-any-file",
        guarantee="rule 39",
        file=_ROOM + "entry.py",
        old="if not (_NAME.fullmatch(found.name) and is_size(found.bytes) and is_size(found.index)):",
        new="if not (is_size(found.bytes) and is_size(found.index)):",
        tests=("test_a_manifest_that_names_no_pack_is_refused",),
    ),
)
