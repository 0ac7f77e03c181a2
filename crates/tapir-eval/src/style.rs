//! Colours and type of pages and figures: one style for both, for light, dark and printed pages.

/// Colours by name, so that a figure changes with the page. Series differ in lightness and dash
/// too, for print.
pub(crate) const STYLE: &str = "
:root{--paper:#fff;--ink:#1c2126;--dim:#5d6873;--rule:#d5dbe1;--soft:#f3f5f7;--bad:#b3261e;--good:#1d6f42;
--c0:#1b5e9b;--c1:#c8641b;--c2:#5b8c3a;--c3:#8a4fa0;--c4:#7d8791}
@media (prefers-color-scheme:dark){:root{--paper:#14181c;--ink:#e4e8ec;--dim:#9aa6b1;--rule:#37404a;--soft:#1d2329;--bad:#ff8a80;
--good:#7fd1a0;--c0:#6fb1ec;--c1:#f0a060;--c2:#a5cf80;--c3:#cf9be2;--c4:#8c97a3}}
@media print{:root{--paper:#fff;--ink:#000;--dim:#444;--rule:#bbb;--soft:#f3f3f3;--bad:#a00;--good:#060;
--c0:#12436f;--c1:#c8641b;--c2:#6fa34a;--c3:#8a4fa0;--c4:#8a8a8a}}
svg text{fill:var(--ink);font:12px system-ui,'DejaVu Sans',sans-serif}
svg .dim{fill:var(--dim)} svg .grid{stroke:var(--rule);stroke-width:1} svg .paper{fill:var(--paper)}
svg .axis{stroke:var(--dim);stroke-width:1} svg .mean{stroke:var(--ink);stroke-width:2} svg .title{font-weight:600;font-size:13px} svg .small{font-size:10.5px}
svg .mono,svg .wrong,svg .revise,svg .mark,svg.trace .dim{font:12px ui-monospace,'DejaVu Sans Mono',monospace}
svg .word{font:600 12px ui-monospace,'DejaVu Sans Mono',monospace}
svg .wrong,.wrong{fill:var(--bad);color:var(--bad);font-style:italic} svg .revise{font-weight:700;fill:var(--c1)}
svg .mark{fill:var(--c1)} svg .old{font:9.5px ui-monospace,'DejaVu Sans Mono',monospace;fill:var(--dim);text-decoration:line-through}
svg .onbar{fill:var(--paper);font-size:10.5px;font-weight:600}
.f0{fill:var(--c0)}.f1{fill:var(--c1)}.f2{fill:var(--c2)}.f3{fill:var(--c3)}.f4{fill:var(--c4)}
.l0{stroke:var(--c0)}.l1{stroke:var(--c1)}.l2{stroke:var(--c2)}.l3{stroke:var(--c3)}.l4{stroke:var(--c4)}
.line{fill:none;stroke-width:2}.theirs{stroke-dasharray:5 4;stroke-width:1.5;opacity:.75}
.faint{opacity:.45}
";

const PAGE: &str = "
*{box-sizing:border-box} body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,'DejaVu Sans',sans-serif}
main{max-width:72rem;margin:0 auto;padding:2rem 1.25rem 4rem}
h1{font-size:1.7rem;line-height:1.25;margin:.2rem 0 .6rem} h2{font-size:1.25rem;margin:2.6rem 0 .5rem;border-top:1px solid var(--rule);padding-top:1.1rem}
h3{font-size:1rem;margin:1.4rem 0 .3rem} p{max-width:46rem;margin:.4rem 0 .8rem} .note{color:var(--dim);font-size:.92rem}
.scroll{overflow-x:auto;margin:.6rem 0 1rem} table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .7rem;text-align:right;border-bottom:1px solid var(--rule);white-space:nowrap}
th{white-space:normal;vertical-align:bottom;color:var(--dim);font-weight:600;border-bottom-width:2px} th.t,td.t{text-align:left} th:first-child,td:first-child{padding-left:0}
tbody tr:hover{background:var(--soft)} .figures{display:flex;flex-wrap:wrap;align-items:flex-start;gap:1.1rem 1.4rem;margin:.6rem 0 1rem}
figure{margin:0;max-width:262px} figcaption{font-size:.85rem} .pair{display:flex;flex-wrap:wrap;gap:.6rem}
.figures svg{max-width:100%;height:auto} details{margin:.1rem 0;font-size:.92rem} summary{cursor:pointer;color:var(--dim)}
nav{line-height:1.9} .key{margin-right:1.1rem;white-space:nowrap} .key svg{vertical-align:-1px;margin-right:.35rem}
nav a{color:var(--c0);margin-right:1rem;text-decoration:none;font-size:.92rem;white-space:nowrap} nav a:hover{text-decoration:underline}
@media print{main{max-width:none;padding:0} h2,figure,svg,tr{break-inside:avoid} nav,details:not([open]){display:none} body{font-size:13px} h2,h3{break-after:avoid} .scroll{overflow:visible} .scroll svg{max-width:100%;height:auto}
table{font-size:.72rem} th,td{padding:.15rem .4rem}}
";

/// A self-contained page.
pub(crate) fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>{STYLE}{PAGE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
}
