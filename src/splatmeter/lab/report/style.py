"""The page's style: one column, system fonts, colours that also the colour-blind can tell apart."""

from __future__ import annotations

from splatmeter.lab.report.markup import Markup

_LIGHT = """
--page:#f7f7f5;--paper:#fff;--ink:#1b222c;--muted:#586270;--line:#dcdfe4;--faint:#eceef1;--link:#0a58a6;
--good:#00694f;--bad:#a83c00;--doubt:#835400;--same:#0a58a6;--open:#586270;
--c0:#4a5361;--c1:#0072b2;--c2:#d55e00;--c3:#008f68;--c4:#b8578f;--c5:#b98500;--c6:#3f9bd6;--c7:#7a4fb5;
--loading:#e3e5e8;--training:#dcecf9;--evaluation:#fbe6cd;--saving:#d5efe4;--band:#e9e3f4;--edge:#f2f3f5;
"""
_DARK = """
--page:#11151a;--paper:#191f27;--ink:#e4e8ee;--muted:#9ba6b5;--line:#343d4a;--faint:#252d37;--link:#7dbbff;
--good:#3fc79e;--bad:#ff8f52;--doubt:#e8b04a;--same:#7dbbff;--open:#9ba6b5;
--c0:#aab4c2;--c1:#4aa8e8;--c2:#f5843c;--c3:#2fc295;--c4:#e28ebd;--c5:#dcae36;--c6:#94d2ff;--c7:#b596ea;
--loading:#2b323c;--training:#1d3448;--evaluation:#473419;--saving:#19392e;--band:#38304d;--edge:#212833;
"""

_TEXT = """
*{box-sizing:border-box}
html{scroll-behavior:smooth;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--ink);line-height:1.5;overflow-wrap:anywhere;
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
main,header,footer{max-width:64rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:1.75rem;position:relative}
h1{font-size:1.75rem;line-height:1.2;margin:0 9rem .3rem 0;letter-spacing:-.01em}
h2{font-size:1.2rem;line-height:1.3;margin:0 0 .75rem}
h3{font-size:1rem;margin:1.4rem 0 .5rem}
p{margin:.4rem 0;max-width:46rem}
a{color:var(--link)}
a.traced{color:inherit;text-decoration:underline dotted var(--muted);text-underline-offset:3px}
a.traced:hover{color:var(--link)}
.muted,figcaption,footer,caption{color:var(--muted);font-size:.875rem}
figcaption{max-width:46rem;margin-top:.4rem}
section{background:var(--paper);border:1px solid var(--line);border-radius:10px;padding:1.25rem;margin:1rem 0;
scroll-margin-top:1rem}
figure{margin:0}
code{font:.8125rem/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
overflow-wrap:anywhere}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit;margin:.4rem 0;max-width:46rem}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.25rem 1.1rem;margin:.9rem 0 0;padding:0;
font-size:.9rem}
button,select{font:inherit;font-size:.875rem;color:var(--ink);background:var(--paper);
border:1px solid var(--line);
border-radius:7px;padding:.4rem .7rem;min-height:2.4rem;max-width:100%}
button{cursor:pointer}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
#theme{position:absolute;right:1.25rem;top:1.6rem}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(10.5rem,1fr));gap:.75rem;margin:1rem 0;
padding:0}
.cards div{background:var(--paper);border:1px solid var(--line);border-radius:10px;padding:.8rem 1rem}
.cards dt{color:var(--muted);font-size:.8125rem}
.cards dd{margin:0;font-size:1.35rem;font-weight:600;font-variant-numeric:tabular-nums;line-height:1.3}
.cards small{display:block;font-weight:400;font-size:.8125rem;color:var(--muted)}
.chip{display:inline-block;border:1px solid currentColor;border-radius:99px;padding:0 .55rem;
font-size:.8125rem;
font-weight:600;max-width:100%;line-height:1.5}
.good{color:var(--good)}.bad{color:var(--bad)}.doubt{color:var(--doubt)}.same{color:var(--same)}.open{
color:var(--open)}
.scroll{overflow-x:auto;max-width:100%}
table{overflow-wrap:break-word;border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums;min-width:100%}
caption{text-align:left;padding:.3rem 0}
.runs td,.runs th,.runs code,#phases td,#phases th,#history td,#history th{white-space:nowrap}
#phases tbody th{white-space:normal;overflow-wrap:anywhere;min-width:7.5rem}
th,td{text-align:left;padding:.4rem .75rem .4rem 0;border-bottom:1px solid var(--faint);vertical-align:top}
thead th{color:var(--muted);font-weight:600;border-color:var(--line);white-space:nowrap}
tbody th{font-weight:600}
td.n,th.n{text-align:right}
tr:target{background:var(--evaluation)}
details{margin-top:.6rem}
summary{cursor:pointer;color:var(--muted);font-size:.875rem}
.tree,.tree ol{list-style:none;margin:0;padding:0}
.tree ol{margin-left:.55rem;padding-left:1.1rem;border-left:2px solid var(--line)}
.tree li{margin:.65rem 0}
.tree .head{display:flex;flex-wrap:wrap;gap:.2rem .6rem;align-items:baseline}
.findings{list-style:none;margin:0;padding:0}
.findings li{border-left:4px solid currentColor;padding:.1rem 0 .1rem .8rem;margin:.8rem 0}
.findings p{color:var(--ink)}
dl.facts{display:grid;grid-template-columns:minmax(7rem,12rem) 1fr;gap:.25rem 1rem;margin:0;
font-size:.9375rem}
dl.facts dt{color:var(--muted)}
dl.facts dd{margin:0;overflow-wrap:anywhere}
footer{padding-top:.5rem;padding-bottom:2.5rem}
"""

_CHARTS = """
.chart{display:block;width:100%;height:auto;overflow:visible}
.narrow{display:none}
.chart text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif;
fill:var(--ink);
font-variant-numeric:tabular-nums}
.chart .tick,.chart .unit{fill:var(--muted)}
.chart .name{font-weight:600}
.chart .word{font-weight:600;fill:currentColor}
.grid{stroke:var(--faint)}
.axis{stroke:var(--muted)}
.one{stroke:var(--muted);stroke-dasharray:4 3}
.floor{fill:var(--band)}
.tolerated{fill:var(--edge)}
.edge{fill:none;stroke:var(--muted);stroke-dasharray:2 3}
.block{fill:var(--muted);opacity:.65}
.interval{stroke:currentColor;stroke-width:2}
.estimate{fill:currentColor}
.curve{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round;vector-effect:non-scaling-stroke}
.thin{stroke-width:1;opacity:.6}
.d1{stroke-dasharray:7 4}.d2{stroke-dasharray:2 4}
.mark{fill:currentColor;stroke:var(--paper);stroke-width:1}
.faint{opacity:.45}
.peak{stroke:var(--ink);stroke-width:1.25;stroke-dasharray:4 3}
.c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}
.c4{color:var(--c4)}.c5{color:var(--c5)}.c6{color:var(--c6)}.c7{color:var(--c7)}
.bar{stroke:var(--paper);stroke-width:1}
.p0{fill:var(--c1)}.p1{fill:var(--c2)}.p2{fill:var(--c3)}.p3{fill:var(--c4)}
.p4{fill:var(--c5)}.p5{fill:var(--c6)}.p6{fill:var(--c7)}.p7{fill:var(--c0)}.rest{fill:var(--line)}
.stage{fill:var(--faint)}.stage.loading{fill:var(--loading)}.stage.training{fill:var(--training)}
.stage.evaluation{fill:var(--evaluation)}.stage.saving{fill:var(--saving)}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;margin:0 0 .6rem;padding:0;
font-size:.875rem}
.legend li{display:flex;align-items:center;gap:.4rem;min-width:0;overflow-wrap:anywhere}
.swatch{width:26px;height:16px;flex:none}
"""

_PICTURES = """
.controls{display:flex;flex-wrap:wrap;gap:.6rem 1rem;margin-bottom:.75rem;font-size:.875rem}
.controls label{display:flex;align-items:center;gap:.4rem;min-width:0;max-width:100%}
.controls select{min-width:0}
.compare{position:relative;overflow:hidden;border-radius:7px;background:#000;--cut:50%;touch-action:pan-y;
isolation:isolate;width:100%;margin:0 auto}
.compare.tall{max-width:34rem}
.compare img{display:none;width:100%;height:auto}
.compare img.left{display:block}
.compare img.right{display:block;position:absolute;inset:0;width:100%;height:100%;
clip-path:inset(0 0 0 var(--cut))}
.compare.difference{filter:brightness(4)}
.compare.difference img.right{mix-blend-mode:difference;clip-path:none}
.compare .handle{position:absolute;top:0;bottom:0;left:var(--cut);width:2px;margin-left:-1px;background:#fff;
box-shadow:0 0 0 1px #0008;pointer-events:none}
.compare.difference .handle,.compare.difference .side{display:none}
.compare .side{position:absolute;bottom:.5rem;background:#000b;color:#fff;font-size:.75rem;
padding:.1rem .45rem;
border-radius:4px;pointer-events:none;max-width:46%;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.side.l{left:.5rem}.side.r{right:.5rem}
.slider{display:block;width:100%;margin:.7rem 0 0;accent-color:var(--link);min-height:1.75rem}
"""

_WIDTHS = """
@media (max-width:720px){
.wide{display:none}.narrow{display:block;max-width:30rem;margin:0 auto}
main,header,footer{padding-left:.75rem;padding-right:.75rem}
section{padding:.9rem .8rem}
h1{font-size:1.4rem;margin-right:0}
#theme{position:static;margin-top:.6rem}
dl.facts{grid-template-columns:1fr;gap:0}
dl.facts dd{margin-bottom:.4rem}
.cards{grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:.5rem}
.tree ol{margin-left:.3rem;padding-left:.75rem}
}
@media (prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
@media print{
body{background:#fff;font-size:11pt}
section{break-inside:avoid-page;border:0;padding:0;margin:1.2rem 0}
section.long{break-inside:auto}
nav,#theme,.slider,.controls,.compare .handle,.compare .side{display:none}
.compare img.left,.compare img.right{display:inline-block;position:static;width:49%;height:auto;
clip-path:none}
.wide{display:block}.narrow{display:none}
.scroll{overflow:visible}
a{color:inherit;text-decoration:none}
}
"""


def style() -> Markup:
    """Light unless the reader's system or the button says dark; paper is always light."""
    themes = (
        f":root{{color-scheme:light;{_LIGHT}}}"
        f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light])"
        f"{{color-scheme:dark;{_DARK}}}}}"
        f"@media screen{{:root[data-theme=dark]{{color-scheme:dark;{_DARK}}}}}"
    )
    return Markup((themes + _TEXT + _CHARTS + _PICTURES + _WIDTHS).replace("\n", ""))
