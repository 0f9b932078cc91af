"""From a ``Diagnosis`` to the document that every readable format draws."""

from __future__ import annotations

from traceinsight.diagnosis import Diagnosis
from traceinsight.report.document import Document
from traceinsight.report.options import ReportOptions
from traceinsight.report.sections import (
    clocks,
    communication,
    data_quality,
    device_time,
    findings,
    forward,
    judgement,
    kernels,
    phases,
    run,
    shards,
    stragglers,
)


def build(diagnosis: Diagnosis, options: ReportOptions) -> Document:
    """Verdict, what to do, the evidence, what is not known, and what it all rests on."""
    sections = (
        findings.section(diagnosis),
        device_time.section(diagnosis, options),
        communication.section(diagnosis),
        forward.section(diagnosis, options),
        stragglers.section(diagnosis),
        shards.section(diagnosis, options),
        phases.section(diagnosis),
        kernels.section(diagnosis),
        judgement.in_order(diagnosis),
        judgement.not_judged(diagnosis),
        data_quality.section(diagnosis),
        clocks.section(diagnosis, options),
        run.section(diagnosis),
    )
    generator = diagnosis.generator
    return Document(
        verdict=diagnosis.verdict,
        basis=run.basis(diagnosis),
        sections=tuple(section for section in sections if section is not None),
        footer=f"{generator.name} {generator.version} · every number's formula: docs/metrics.md",
    )
