"""Every event of every public trace against an independent reading of the same file."""

from collections import Counter

import pytest

from tests.reading.oracle import category_counts, decimal_events, recorded_times, times_by_identity
from traceinsight.reading import load
from traceinsight.trace.recording import EventKind

pytestmark = pytest.mark.corpus

KIND_OF_CATEGORY = {
    "kernel": EventKind.KERNEL,
    "Kernel": EventKind.KERNEL,
    "gpu_memcpy": EventKind.MEMCPY,
    "Memcpy": EventKind.MEMCPY,
    "gpu_memset": EventKind.MEMSET,
    "Memset": EventKind.MEMSET,
    "cuda_runtime": EventKind.RUNTIME,
    "cuda_driver": EventKind.RUNTIME,
    "Runtime": EventKind.RUNTIME,
    "gpu_user_annotation": EventKind.GPU_ANNOTATION,
    "python_function": EventKind.PYTHON,
    "overhead": EventKind.OVERHEAD,
}


def whole_files(corpus):
    return [path for path in sorted(corpus.rglob("*.json.gz")) if path.parent.name != "broken"]


@pytest.mark.slow
def test_every_event_of_every_public_trace_is_read_as_its_file_says(corpus):
    files = whole_files(corpus)
    assert len(files) > 40
    for path in files:
        events = decimal_events(path)
        (recording,) = load(path, workers=1).recordings
        assert recording.notes == (), path
        assert len(recording.events) == len(events), path
        assert_times_within_a_nanosecond(events, recording, path)
        assert_kinds_follow_categories(events, recording, path)


def assert_times_within_a_nanosecond(events, recording, path):
    expected, found = times_by_identity(events), recorded_times(recording)
    assert expected.keys() == found.keys(), path
    for key, times in expected.items():
        for (start, end), (found_start, found_end) in zip(times, found[key], strict=True):
            assert abs(start - found_start) <= 1, (path, key)
            assert abs(end - found_end) <= 1, (path, key)


def assert_kinds_follow_categories(events, recording, path):
    expected = Counter()
    for category, count in category_counts(events).items():
        if category in KIND_OF_CATEGORY:
            expected[KIND_OF_CATEGORY[category]] += count
    found = Counter(EventKind(kind) for kind in recording.events.kind.tolist())
    assert {kind: found[kind] for kind in expected} == dict(expected), path
    assert found[EventKind.OTHER] == 0, path


def test_ranks_and_worlds_as_documented(corpus):
    def ranks(folder):
        return [recording.rank for recording in load(corpus / folder).recordings]

    assert ranks("dlrm_v100_8rank") == list(range(8))
    assert ranks("nanogpt_h100_8rank") == list(range(8))
    assert ranks("ranking_2_of_128") == [0, 1]
    assert load(corpus / "ranking_2_of_128").recordings[0].world_size == 128
    assert ranks("no_rank") == [None]
    (lone,) = load(corpus / "cpu_only_rank34").recordings
    assert (lone.rank, lone.world_size, lone.backend, lone.has_gpu_work) == (34, 300, "gloo", False)
    assert [group.name for group in lone.process_groups[:10]] == [str(number) for number in range(10)]
    assert lone.process_groups[0].ranks == tuple(range(300))


def test_two_runs_in_one_folder_are_told_apart(corpus):
    folder = corpus / "torchrec_v100_4rank" / "sst_long_a2a_optimizer_2"
    newest = load(folder)
    assert [recording.rank for recording in newest.recordings] == [0, 1, 2, 3]
    assert all("1698955629" in recording.file for recording in newest.recordings)
    (older,) = newest.other_runs
    assert older.ranks == (0, 1, 2, 3)
    assert all("1698955364" in file for file in older.files)
    picked = load(folder, run=1)
    assert tuple(recording.file for recording in picked.recordings) == older.files
    assert "several-runs" in {note.code for note in newest.skipped}


def test_sub_folders_with_runs_of_their_own_are_not_mixed(corpus):
    result = load(corpus / "torchrec_v100_4rank")
    assert [run.ranks for run in result.other_runs] == [(0, 1, 2, 3)] * 4
    assert all("qcomm" in recording.file for recording in result.recordings)


def test_captures_of_one_worker_are_runs_of_their_own(corpus):
    result = load(corpus / "loader_bound_pair" / "num_workers_0")
    assert len(result.recordings) == 1
    assert len(result.other_runs) == 3
    assert [run.start for run in result.other_runs] == sorted(run.start for run in result.other_runs)


def test_collective_arguments_of_kernels(corpus):
    recordings = load(corpus / "nanogpt_h100_8rank").recordings
    for recording in recordings:
        comm = [
            recording.comm_args[i]
            for i in recording.of_kind(EventKind.KERNEL).tolist()
            if i in recording.comm_args
        ]
        assert len(comm) == 56
        assert {args.group_ranks for args in comm} == {tuple(range(8))}
        assert {args.dtype for args in comm} <= {"BFloat16", "Float", "Long", "Int"}
    first = min(i for i in recordings[0].comm_args if recordings[0].events.kind[i] == EventKind.KERNEL)
    args = recordings[0].comm_args[first]
    assert (args.collective, args.in_elements, args.out_elements) == ("_reduce_scatter_base", 96, 12)


def test_gpu_lanes_name_their_stream(corpus):
    (recording,) = load(corpus / "mi300x_resnet_rank0_of_8").recordings
    lanes = {
        recording.lanes[lane] for lane in recording.events.lane[recording.of_kind(EventKind.KERNEL)].tolist()
    }
    assert {(lane.device, lane.stream) for lane in lanes} == {(2, 0), (2, 4)}
    (nccl,) = [lane for lane in recording.lanes if lane.stream == 4]
    assert (nccl.pid, nccl.tid) == ("2", "4")


BROKEN = {
    "bare_NA_values.kineto131.json": (1, {"repaired-events"}),
    "bare_list_no_meta.pt95460.json": (2, set()),
    "comms_id_gt_int64.hta324.json": (1, set()),
    "impossible_duration_same_stream.hyperloom1116.json": (3, {"impossible-duration"}),
    "invalid_utf8.pt136180.json": (2, {"repaired-events"}),
    "truncated_gzip.torchrec.json.gz": (None, {"truncated-file", "lost-events"}),
    "truncated_mid_event.torchrec.json": (None, {"truncated-file", "lost-events"}),
    "ts0_dur0_kernels.kineto109.json": (2, {"lost-gpu-events"}),
    "unescaped_quotes_newline.pt113001.json": (2, {"repaired-events"}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_give_what_is_left_of_them(corpus, name):
    count, codes = BROKEN[name]
    (recording,) = load(corpus / "broken" / name).recordings
    assert {note.code for note in recording.notes} == codes
    assert count is None or len(recording.events) == count


def test_a_truncated_file_keeps_every_whole_event(corpus):
    path = corpus / "broken" / "truncated_mid_event.torchrec.json"
    # The last event was cut inside its arguments.
    text = path.read_text()
    whole = text.count('"ph": "X"') - 1
    (recording,) = load(path).recordings
    assert len(recording.events) == whole


def test_an_impossible_duration_ends_where_the_next_kernel_starts(corpus):
    (recording,) = load(corpus / "broken" / "impossible_duration_same_stream.hyperloom1116.json").recordings
    assert recording.events.start_ns.tolist() == [1_000_000, 1_060_000, 1_600_000]
    assert recording.events.dur_ns.tolist() == [60_000, 500_000, 500_000]
