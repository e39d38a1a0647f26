"""Reads manifests for a comparison with the command line.

From stdin: ``{"kinds": [...], "texts": [...]}``. To stdout: for each text a list with the JSON of each job, with the
manifest that is sent as it is, or with what is wrong.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from google.protobuf import json_format

from gangway._documents import documents_of
from gangway._manifest import KindForm, request_of
from gangway.errors import ManifestError


def main() -> None:
    logging.disable()
    given = json.load(sys.stdin)
    kinds = [KindForm(**kind) for kind in given["kinds"]]
    json.dump([[outcome(document, kinds) for document in documents_of(text)] for text in given["texts"]], sys.stdout)


def outcome(document: Any, kinds: list[KindForm]) -> Any:
    try:
        request = request_of(document, kinds, namespace="default")
    except ManifestError as error:
        return {"problems": error.problems}
    if request.HasField("manifest"):
        return {"sent": json_format.MessageToDict(request.manifest)}
    return {"job": json_format.MessageToDict(request.job)}


if __name__ == "__main__":
    main()
