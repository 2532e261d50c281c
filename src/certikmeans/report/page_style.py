"""The style sheet of the page."""

STYLE = """
:root{color-scheme:light;--ink:#1d2530;--soft:#5a6472;--line:#dde2e8;--good:#00795a}
*{box-sizing:border-box}
body{margin:0;background:#f4f6f8;color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:0 auto;padding:1.5rem 1rem 3rem}
h1{font-size:1.5rem;margin:.2rem 0 1rem;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:0 0 .7rem}
h3{font-size:.95rem;margin:.4rem 0}
section{background:#fff;border:1px solid var(--line);border-radius:10px;padding:1.1rem 1.2rem;
margin-top:1rem}
p{margin:.4rem 0}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.7rem}
.card{background:#fff;border:1px solid var(--line);border-radius:10px;padding:.7rem .9rem;
border-top:4px solid #c98a00;overflow-wrap:anywhere}
.optimal .card{border-top-color:var(--good)}
.infeasible .card{border-top-color:#b3261e}
.card span{display:block;color:var(--soft);font-size:.82rem}
.card b{font-size:1.15rem;font-variant-numeric:tabular-nums}
svg{display:block;width:100%;height:auto}
svg.none{position:absolute;width:0;height:0}
svg.sign{width:1.1rem;height:1.1rem}
.legend svg.sign{display:inline-block;vertical-align:-.2rem}
svg text{font:12px system-ui,sans-serif;fill:#444}
figure{margin:0}
figcaption{font-size:.9rem;margin-bottom:.4rem}
figcaption span{margin-right:1rem}
.grid{stroke:#e8ecf0;fill:none}
.axis{stroke:#9aa3ad;fill:none}
.line{fill:none;stroke-width:2}
.goal{stroke:#888;stroke-dasharray:2 4;fill:none}
.centre{fill:#000;stroke:#fff;stroke-width:.2}
.legend span{margin-right:1.2rem;font-size:.9rem;white-space:nowrap}
.note{color:var(--soft);font-size:.88rem}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(22rem,100%),1fr));gap:1rem}
.three{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(16rem,100%),1fr));gap:1.2rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}
td,th{padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--line);text-align:left;
white-space:nowrap}
.numbers td,.numbers th{text-align:right;padding:.25rem .5rem}
.numbers th{white-space:normal;overflow-wrap:break-word;vertical-align:bottom}
pre{background:#f0f3f6;border-radius:6px;padding:.6rem .8rem;overflow-x:auto;font-size:.85rem;
white-space:pre-wrap;overflow-wrap:anywhere}
code{background:#f0f3f6;border-radius:4px;padding:0 .25rem}
details{margin:.3rem 0 .8rem}
summary{cursor:pointer;color:#0b5cad}
@media print{body{background:#fff}section{break-inside:avoid}}
""".replace("\n", "")
