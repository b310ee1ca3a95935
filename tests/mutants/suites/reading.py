"""Faults in inputs, host transforms and storages."""

# ruff: noqa: E501 - a piece of source and what replaces it stand in one line

from tests.mutants.suites.faulty import faults, sound, template

INPUTS, STORAGE, TRANSFORM = sound("inputs"), template("storage"), template("transform")
SQLITE, TAR = "TestRowsOfSQLite", "TestMembersOfTar"

MUTANTS = (
    *faults(
        "input",
        INPUTS,
        SQLITE,
        keeps_every_connection=(
            "self.connection = sqlite3.connect(self.path)",
            "self.connection = sqlite3.connect(self.path)\n"
            "        RowsOfSQLite.kept = [*getattr(RowsOfSQLite, 'kept', ()), self.connection]",
        ),
        forgets_where_it_stands=('self.at, self.left = state["at"], state["left"]', 'self.left = state["left"]'),
        stands_one_ahead=('return {"at": self.at, "left": self.left}', 'return {"at": self.at + 1, "left": self.left}'),
        forgets_the_epoch=('return {"at": self.at, "left": self.left}', 'return {"at": self.at, "left": self.count}'),
        second_epoch_lacks_a_row=(
            "self.at = (self.at + len(rows)) % self.count",
            "self.at = (self.at + len(rows)) % self.count or 1",
        ),
        fingerprint_of_hashes=("return hashlib.sha256(self.path.read_bytes()).hexdigest()", 'return str(hash("rows"))'),
        fingerprint_of_the_object=("return hashlib.sha256(self.path.read_bytes()).hexdigest()", "return str(id(self))"),
        order_of_chance=("ORDER BY id LIMIT", "ORDER BY random() LIMIT"),
        never_ends=("if self.left == 0:", "if self.left < -99:"),
    ),
    *faults(
        "input",
        INPUTS,
        TAR,
        order_of_hashes=(
            "names = [member.name for member in archive.getmembers()]",
            "names = sorted({member.name for member in archive.getmembers()}, key=hash)",
        ),
        leaves_an_archive_open=(
            "with tarfile.open(path) as archive:",
            "vars(members_of_tar).setdefault('kept', []).append(tarfile.open(path))\n"
            "        with tarfile.open(path) as archive:",
        ),
        form_of_the_batch=(
            'np.array([row["x"] for row in rows], np.float32)',
            'np.array([row["x"] * (1 + begin) for row in rows])',
        ),
        draws_from_the_global_generator=(
            "for begin in range(",
            "for begin in np.random.permutation(3)[0] * 0 + np.arange(",
        ),
    ),
    *faults(
        "transform",
        TRANSFORM,
        changes_what_it_is_given=(
            "return {**batch, self.feature: scaled}",
            "batch[self.feature] = scaled\n        return batch",
        ),
        sees_the_batch=("- np.float32(self.mean))", "- batch[self.feature].mean())"),
        config_lacks_an_argument=('"mean": self.mean, "deviation"', '"deviation"'),
        drops_other_features=("return {**batch, self.feature: scaled}", "return {self.feature: scaled}"),
        bucket_of_a_hash=("np.float32(self.mean)) /", "np.float32(self.mean + hash(self.feature) % 1000)) /"),
        form_of_one_row=(
            "/ np.float32(self.deviation)",
            "/ np.float32(self.deviation)\n        scaled = scaled.squeeze()",
        ),
        one_buffer_for_all=(
            "return {**batch, self.feature: scaled}",
            "kept = vars(self).setdefault('kept', scaled.copy())\n        kept[: len(scaled)] = scaled\n"
            "        return {**batch, self.feature: kept[: len(scaled)]}",
        ),
        config_is_no_json=('"mean": self.mean, "deviation"', '"mean": np.float32(self.mean), "deviation"'),
        config_of_another_mean=('"mean": self.mean, "deviation"', '"mean": 0.0, "deviation"'),
        moves_with_each_batch=(
            '"""The batch with the feature scaled; nothing it was given is changed."""',
            "self.mean += 1",
        ),
        name_is_no_name=('name, version = "acme_transform", 1', 'name, version = "acme-transform", 1'),
        version_is_a_text=('name, version = "acme_transform", 1', 'name, version = "acme_transform", "1"'),
        adds_noise=("/ np.float32(self.deviation)", "/ np.float32(self.deviation) + np.random.default_rng().normal()"),
        draws_from_the_global_generator=(
            "/ np.float32(self.deviation)",
            "/ np.float32(self.deviation) + np.float32(0 * np.random.random())",
        ),
    ),
    *faults(
        "storage",
        STORAGE,
        put_new_replaces=(
            '"INSERT INTO objects VALUES (?, ?, ?)", (key',
            '"INSERT OR REPLACE INTO objects VALUES (?, ?, ?)", (key',
        ),
        put_does_not_replace=(
            'connection.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?)", (key, time.time(), data))',
            'connection.execute("INSERT OR IGNORE INTO objects VALUES (?, ?, ?)", (key, time.time(), data))',
        ),
        deletes_what_begins_so=("DELETE FROM objects WHERE key = ?", "DELETE FROM objects WHERE key LIKE ? || '%'"),
        sizes_are_wrong=("SELECT key, length(data), modified", "SELECT key, length(key), modified"),
        lists_neighbours=('f"{check_key(prefix)}/"', "check_key(prefix)"),
        short_reads_pass=("if len(parts[-1]) < end - begin:", "if False:"),
        streams_of_any_size=("if written != size:", "if False:"),
        a_removed_file_is_made_again=("if not self._path.exists():", "if False:"),
        keys_are_not_checked=(
            '        """The connection, alone; what is written is committed at the end, or nothing of it is."""\n        check_key(key)',
            '        """The connection, alone; what is written is committed at the end, or nothing of it is."""',
        ),
        clock_of_another_origin=("            return time.time()", "            return time.monotonic()"),
    ),
)
