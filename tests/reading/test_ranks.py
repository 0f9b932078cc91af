import pytest

from tests.reading.traces import cpu_op, kernel, trace, write
from traceinsight.base.errors import UsageError
from traceinsight.reading import load
from traceinsight.trace.recording import Device, ProcessGroup


def read(path, content, **options):
    (recording,) = load(write(path, content), **options).recordings
    return recording


def comm(rank, description="default_pg", ranks="[0, 1, 2, 3]", external_id=9):
    names = {"Collective name": "allreduce", "Process Group Description": description,
             "Process Group Ranks": ranks, "Rank": rank, "Group size": 4}  # fmt: skip
    return cpu_op("record_param_comms", 1100, 5, external_id, **names)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank7.json", 7), ("rank-7.Jul_15.1074.pt.trace.json", 7), ("Rank_07_x.json", 7),
        ("worker3_step_12.169.pt.trace.json", 3),
        ("Baseline - 12-11 - 220ff-rank6-chrome-trace.json", 6), ("worker0.1623143089861.pt.trace.json", 0),
        ("trace.json", None), ("crank7.json", None), ("step_7.json", None),
    ],
)  # fmt: skip
def test_rank_from_the_file_name(tmp_path, name, rank):
    recording = read(tmp_path / name, trace(kernel(), rank=None))
    assert (recording.rank, recording.rank_source) == (rank, "none" if rank is None else "file-name")


def test_the_file_itself_wins_over_its_name(tmp_path):
    recording = read(tmp_path / "rank7.json", trace(kernel(), rank=2))
    assert (recording.rank, recording.rank_source) == (2, "distributedInfo")


def test_the_users_pattern_wins_over_everything(tmp_path):
    recording = read(tmp_path / "gpu5" / "rank7.json", trace(kernel(), rank=2), rank_regex=r"gpu(\d+)/")
    assert (recording.rank, recording.rank_source) == (5, "rank-regex")
    unmatched = read(tmp_path / "rank7.json", trace(kernel(), rank=2), rank_regex=r"tpu(\d+)")
    assert unmatched.rank_source == "distributedInfo"


@pytest.mark.parametrize("pattern", ["(", r"rank\d+", r"(a)(b)"])
def test_a_bad_pattern_is_a_usage_error(tmp_path, pattern):
    with pytest.raises(UsageError):
        load(write(tmp_path / "t.json", trace(kernel())), rank_regex=pattern)


@pytest.mark.parametrize(
    ("events", "rank"),
    [
        ([comm(3)], 3),
        ([comm(1, "dp", "[4, 6]")], 6),
        ([comm(2), comm(2, external_id=10)], 2),
        ([comm(2), comm(1, external_id=10)], None),
        ([comm(2, "dp", "[0, 1, ...]")], None),
        ([comm(2, "default_pg", "[0, 1, ...]")], 2),
    ],
)
def test_rank_from_collective_arguments(tmp_path, events, rank):
    recording = read(tmp_path / "t.json", trace(kernel(), *events, rank=None))
    assert recording.rank == rank
    if rank is not None:
        assert recording.rank_source == "collective-arguments"


def test_world_size_from_the_default_group(tmp_path):
    assert read(tmp_path / "a.json", trace(kernel(), comm(3), rank=None)).world_size == 4
    assert read(tmp_path / "b.json", trace(kernel(), rank=None)).world_size is None
    assert read(tmp_path / "c.json", trace(kernel(), comm(3), world_size=16)).world_size == 16


@pytest.mark.parametrize(
    "config",
    [
        [{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1]}, {"pg_name": "1", "ranks": [1]}],
        [
            {"pg_name": 0, "pg_desc": "default_pg", "ranks": "[0, 1]"},
            {"pg_name": 1, "pg_desc": "", "ranks": "[1]"},
        ],
        '[{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1]}, {"pg_name": "1", "ranks": [1]}]',
        {"0": {"pg_desc": "default_pg", "ranks": [0, 1]}, "1": {"ranks": [1]}},
    ],
)
def test_process_groups_in_all_spellings(tmp_path, config):
    content = trace(kernel())
    content["distributedInfo"]["pg_config"] = config
    assert read(tmp_path / "t.json", content).process_groups == (
        ProcessGroup("0", "default_pg", (0, 1)),
        ProcessGroup("1", None, (1,)),
    )


def test_header_fields(tmp_path):
    content = trace(
        kernel(),
        deviceProperties=[
            {"id": 1, "name": "B"},
            {"id": 0, "name": "A", "totalGlobalMem": 5, "numSms": 7},
            "x",
        ],
        hostname="node1",
        cuda_runtime_version=12060,
        note="y" * 5000,
        nested={"a": 1},
    )
    recording = read(tmp_path / "t.json", content)
    assert recording.devices == (Device(0, "A", 5, 7), Device(1, "B", None, None))
    assert (recording.host, recording.backend) == ("node1", "nccl")
    assert recording.metadata["cuda_runtime_version"] == "12060"
    assert len(recording.metadata["note"]) == 1000
    assert "nested" not in recording.metadata


def test_host_from_the_name_that_the_profiler_gives(tmp_path):
    name = "ip-172-31-16-248.us-east-2.compute.internal_24049.1698955364380200319.pt.trace.json"
    assert read(tmp_path / name, trace(kernel())).host == "ip-172-31-16-248.us-east-2.compute.internal"
    assert read(tmp_path / "worker0_step_12.1694128201545.pt.trace.json", trace(kernel())).host is None


def test_a_broken_header_is_read_key_by_key(tmp_path):
    text = '{"schemaVersion": 1, "x": oops oops, "distributedInfo": {"rank": 5, "world_size": 8}, '
    text += '"traceEvents": ['
    text += '{"ph": "X", "name": "a", "ts": 1, "dur": 1}], "baseTimeNanoseconds": 1000000000000000000}'
    recording = read(tmp_path / "t.json", text)
    assert (recording.rank, recording.world_size) == (5, 8)
    assert recording.events.start_ns.tolist() == [10**18 + 1000]
    assert [note.code for note in recording.notes] == ["broken-header"]
