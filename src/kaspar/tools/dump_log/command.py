"""kafka-dump-log: its options, the output for each kind of file, and the summary of problems."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Final

from kaspar.base.errors import KasparError
from kaspar.tools.command_line import CommandFailed, KafkaOptions, integer, run
from kaspar.tools.dump_log import decoders
from kaspar.tools.dump_log.index_files import (
    IndexOptions,
    TimeIndexProblems,
    dump_offset_index,
    dump_time_index,
)
from kaspar.tools.dump_log.log_file import NO_LIMIT, LogOptions, dump_log
from kaspar.tools.dump_log.state_files import CorruptSnapshot, dump_producer_snapshot, dump_transaction_index

_MAX_MESSAGE_SIZE: Final = 5 * 1024 * 1024


def command_options() -> KafkaOptions:
    options = KafkaOptions(
        "kafka-dump-log",
        "Print what is in the files of a partition, and check its indexes against the log.",
        example="kafka-dump-log --files /var/lib/kaspar/orders-0/00000000000000000000.log --print-data-log",
    )
    options.add_argument(
        "--files",
        metavar="FILE,FILE",
        help="the files, separated by commas: .log, .checkpoint (a snapshot of KRaft), .index, .timeindex, .snapshot "
        "(the state of producers), .txnindex (aborted transactions). REQUIRED",
    )
    options.add_argument("--deep-iteration", action="store_true", help="print the records of each batch, too")
    options.add_argument(
        "--print-data-log", action="store_true", help="print the records with their keys and values. Every decoder does"
    )
    options.add_argument(
        "--skip-record-metadata",
        action="store_true",
        help="of each record print only its key and value; nothing of control records",
    )
    options.add_argument(
        "--max-bytes", type=integer, default=NO_LIMIT, metavar="BYTES", help="read only so much of each log"
    )
    options.add_argument(
        "--index-sanity-check",
        action="store_true",
        help="only check an index by itself, as a start of Kafka's broker does before it uses one",
    )
    options.add_argument(
        "--verify-index-only",
        action="store_true",
        help="check each entry of an index against the log, and print only those that are wrong",
    )
    options.add_argument(
        "--max-message-size",
        type=integer,
        default=_MAX_MESSAGE_SIZE,
        metavar="BYTES",
        help="read so much of the log for each entry of an index (default: 5242880)",
    )
    for name, of in (("--key-decoder-class", "keys"), ("--value-decoder-class", "values")):
        options.add_argument(
            name,
            nargs="?",
            const=decoders.DEFAULT_DECODER,
            metavar="CLASS",
            help=f"print {of} as this class of Kafka's org.apache.kafka.tools.api does: StringDecoder (the default), "
            "IntegerDecoder, LongDecoder or DefaultDecoder (here: the bytes as hexadecimal digits)",
        )
    options.add_argument("--offsets-decoder", action="store_true", help="print records of __consumer_offsets")
    options.add_argument("--transaction-log-decoder", action="store_true", help="print records of __transaction_state")
    options.add_argument(
        "--cluster-metadata-decoder", action="store_true", help="print records of KRaft's metadata log and snapshots"
    )
    options.add_argument(
        "--remote-log-metadata-decoder", action="store_true", help="rejected: tiered storage is not supported"
    )
    options.add_argument(
        "--share-group-state-decoder", action="store_true", help="refused: there are no share groups here"
    )
    return options


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_options()
    options = parser.parse(argv)
    parser.require(options, "files")
    return run(lambda: _Dump(options).run(), _report)


def _report(problem: KasparError) -> None:
    sys.stdout.flush()
    print(problem, file=sys.stderr)


class _Dump:
    """Collects problems of indexes and offsets, which are reported after all other output."""

    def __init__(self, options: argparse.Namespace) -> None:
        decodes = (
            options.offsets_decoder
            or options.transaction_log_decoder
            or options.cluster_metadata_decoder
            or options.key_decoder_class is not None
            or options.value_decoder_class is not None
        )
        self._files: list[str] = options.files.split(",")
        self._log_options = LogOptions(
            deep=options.deep_iteration or options.print_data_log or decodes,
            print_data=options.print_data_log or decodes,
            skip_record_metadata=options.skip_record_metadata,
            max_bytes=options.max_bytes,
            decode=_decoder(options),
        )
        self._index_options = IndexOptions(
            options.index_sanity_check, options.verify_index_only, options.max_message_size
        )
        self._index_mismatches: dict[str, dict[int, int]] = {}
        self._time_index_problems: dict[str, TimeIndexProblems] = {}
        self._gaps: dict[str, dict[int, int]] = {}

    def run(self) -> None:
        for path in self._files:
            print(f"Dumping {path}")
            self._dump(path)
        sys.stdout.flush()
        for line in self._summary():
            print(line, file=sys.stderr)

    def _dump(self, path: str) -> None:
        name, absolute, write = os.path.basename(path), os.path.abspath(path), sys.stdout.write
        match os.path.splitext(name)[1] or f".{name}":
            case ".log" | ".checkpoint":
                self._gaps[absolute] = dump_log(path, name, self._log_options, write)
            case ".index":
                self._index_mismatches[absolute] = dump_offset_index(path, name, self._index_options, write)
            case ".timeindex":
                self._time_index_problems[absolute] = dump_time_index(path, name, self._index_options, write)
            case ".snapshot":
                try:
                    dump_producer_snapshot(path, write)
                except CorruptSnapshot as problem:
                    print(problem, file=sys.stderr)
            case ".txnindex":
                dump_transaction_index(path, name, write)
            case _:
                print(f"Ignoring unknown file {path}", file=sys.stderr)

    def _summary(self) -> list[str]:
        lines = []
        for path, mismatches in self._index_mismatches.items():
            lines += [f"Mismatches in :{path}"] if mismatches else []
            for index_offset in sorted(mismatches, reverse=True):
                lines.append(f"  Index offset: {index_offset}, log offset: {mismatches[index_offset]}")
        for path, problems in self._time_index_problems.items():
            lines += [f"Found timestamp mismatch in :{path}"] if problems.mismatches else []
            lines += [f"  Index timestamp: {index}, log timestamp: {log}" for index, log in problems.mismatches]
        for path, problems in self._time_index_problems.items():
            lines += [f"Found out of order timestamp in :{path}"] if problems.out_of_order else []
            lines += [
                f"  Index timestamp: {index}, Previously indexed timestamp: {previous}"
                for index, previous in problems.out_of_order
            ]
        for path, problems in self._time_index_problems.items():
            lines += [f"The following indexed offsets are not found in :{path}"] if problems.not_found else []
            lines += [f"Indexed offset: {index}, found log offset: {log}" for index, log in problems.not_found]
        for path, gaps in self._gaps.items():
            lines += [f"Non-consecutive offsets in {path}"] if gaps else []
            lines += [f"  {offset} is followed by {gaps[offset]}" for offset in sorted(gaps)]
        return lines


def _decoder(options: argparse.Namespace) -> decoders.Decode:
    if options.offsets_decoder:
        return decoders.group_records
    if options.transaction_log_decoder:
        return decoders.transaction_records
    if options.cluster_metadata_decoder:
        return decoders.metadata_records
    if options.remote_log_metadata_decoder:
        raise CommandFailed("Records of tiered storage cannot be decoded: Kaspar has no tiered storage")
    if options.share_group_state_decoder:
        raise CommandFailed("Records of share groups cannot be decoded: Kaspar has no share groups")
    default = decoders.DEFAULT_DECODER
    return decoders.by_classes(options.key_decoder_class or default, options.value_decoder_class or default)


if __name__ == "__main__":
    sys.exit(main())
