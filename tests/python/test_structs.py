"""The ctypes structs are the C structs: sizes and offsets, as a C compiler sees the header.
SPDX-License-Identifier: MIT"""

import ctypes
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from berlu import _lib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MAIN = "#include <stddef.h>\n#include <stdio.h>\n#include <berlu/berlu.h>\nint main(void)\n{\n%s    return 0;\n}\n"


def c_answers(expressions):
    """The values of C expressions over the public header."""
    lines = "".join(f'    printf("%zu\\n", (size_t)({e}));\n' for e in expressions)
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "p.c"), pathlib.Path(folder, "p")
        source.write_text(MAIN % lines)
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", f"-I{ROOT}/include", source, "-o", program], check=True)
        return [int(line) for line in subprocess.run([program], capture_output=True, check=True).stdout.split()]


class Structs(unittest.TestCase):
    def test_every_struct_has_the_size_and_the_offsets_of_the_header(self):
        wanted, found = [], []
        for name, struct in _lib.STRUCTS.items():
            wanted.append(f"sizeof({name})")
            found.append(ctypes.sizeof(struct))
            for field, *_ in struct._fields_:
                wanted += [f"offsetof({name}, {field})", f"sizeof((({name} *)0)->{field})"]
                found += [getattr(struct, field).offset, getattr(struct, field).size]
        self.assertEqual(dict(zip(wanted, c_answers(wanted))), dict(zip(wanted, found)))

    def test_every_struct_has_all_members_of_the_header(self):
        header = re.sub(r"/\*.*?\*/", "", (ROOT / "include/berlu/act.h").read_text(), flags=re.S)
        for name, struct in _lib.STRUCTS.items():
            body = re.search(r"typedef struct %s \{(.*?)\}" % name, header, re.S)[1]
            members = [
                re.search(r"(\w+)\s*(\[\w+\])?\s*$", part)[1]
                for line in body.split(";")
                if line.strip()
                for part in line.split(",")
            ]
            self.assertEqual(members, [field for field, *_ in struct._fields_], name)

    def test_the_numbers_of_ops_and_dtypes_are_those_of_the_header(self):
        pairs = {
            "BERLU_F32": _lib.F32,
            "BERLU_BF16": _lib.BF16,
            "BERLU_F16": _lib.F16,
            "BERLU_ACT_FORWARD": _lib.FORWARD,
            "BERLU_ACT_BACKWARD": _lib.BACKWARD,
            "BERLU_ACT_BACKWARD_FROM_OUTPUT": _lib.BACKWARD_FROM_OUTPUT,
            "BERLU_ACT_SLOPE": _lib.SLOPE,
            "BERLU_ACT_SECOND": _lib.SECOND,
            "BERLU_ACT_PARAM_SLOPE": _lib.PARAM_SLOPE,
            "BERLU_ACT_PARAMS": _lib.PARAMS,
            "BERLU_ERR_ARG": _lib.ERR_ARG,
            "BERLU_ERR_MEMORY": _lib.ERR_MEMORY,
        }
        self.assertEqual(c_answers(pairs), list(pairs.values()))

    def test_the_package_has_the_version_of_the_project(self):
        project = re.search(r"project\(berlu VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertEqual(_lib.VERSION, project)


if __name__ == "__main__":
    unittest.main()
