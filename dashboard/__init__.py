"""The dashboard: a ``Diagnosis`` as pages to look at.

Started by ``traceinsight dashboard TRACES`` or ``streamlit run dashboard/app.py -- TRACES``. It imports the
public API of ``traceinsight`` only and reads no trace itself. In a wheel this folder is
``traceinsight/_dashboard``, so everything in it imports its neighbours relatively.
"""
