"""Progress, summary, figures and HTML report, made from results and events."""
