"use strict";
// Stands in for a reader of a page: points, clicks, types, and writes down what came of it.
const reported = { errors: [] };
addEventListener("error", (event) => reported.errors.push(String(event.message)));
addEventListener("securitypolicyviolation", (event) => reported.errors.push(`${event.violatedDirective} ${event.blockedURI}`));

const luminance = (colour) => {
    const channels = colour.match(/[\d.]+/g).slice(0, 3).map((channel) => Number(channel) / 255);
    const linear = channels.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
};
const contrast = (a, b) => {
    const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (high + 0.05) / (low + 0.05);
};
const colourOf = (name) => {
    const sample = document.body.appendChild(document.createElement("span"));
    sample.style.color = `var(--${name})`;
    const colour = getComputedStyle(sample).color;
    sample.remove();
    return colour;
};
const contrasts = () => {
    const least = (names, grounds) =>
        Math.min(...names.flatMap((name) => grounds.map((ground) => contrast(colourOf(name), colourOf(ground)))));
    return {
        text: least(["text", "quiet", "accent", "doubt", "answer"], ["ground"]),
        doubt: least(["text", "quiet", "doubt"], ["doubt-ground"]),
        lines: least(["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"], ["ground"]),
    };
};
const readout = (figure) => figure.querySelector(".readout")?.innerText ?? null;
const visible = (node) => getComputedStyle(node).display !== "none";

const probe = () => {
    reported.ready = document.documentElement.dataset.charts;
    const figures = [...document.querySelectorAll("figure.chart")];
    reported.charts = {};
    for (const figure of figures) {
        const plots = [...figure.querySelectorAll(".plot")];
        const shown = plots.filter((plot) => visible(plot.parentElement));
        const box = shown[0].getBoundingClientRect();
        shown[0].dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width / 2, clientY: box.top + 5 }));
        const pointed = readout(figure);
        shown[0].dispatchEvent(new PointerEvent("pointerleave"));
        const left = readout(figure);
        const key = (name) => shown[0].dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
        shown[0].focus();
        key("ArrowRight");
        const first = figure.querySelector("[aria-live]").textContent;
        key("End");
        const last = figure.querySelector("[aria-live]").textContent;
        key("Escape");
        reported.charts[figure.id] = {
            scales: plots.length, shown: shown.length, pointed, left, first, last, width: box.width, height: box.height,
            focus: document.activeElement === shown[0],
        };
    }
    // Names in a chart that lie on each other.
    reported.overlaps = figures.flatMap((figure) => {
        const plot = [...figure.querySelectorAll(".plot")].find((one) => visible(one.parentElement));
        const names = [...plot.querySelectorAll("span.point, span.mark")].filter(visible);
        const boxes = names.map((name) => ({ text: name.innerText, box: name.getBoundingClientRect() }));
        const lie = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
        return boxes.flatMap((one, at) => boxes.slice(at + 1).filter((other) => lie(one.box, other.box)).map((other) => `${figure.id}: ${one.text} on ${other.text}`));
    });
    const figure = document.getElementById("latency");
    const [first] = figure.querySelectorAll(".legend button");
    const line = figure.querySelector(`.row.log g[data-series="0"]`);
    reported.toggle = { before: visible(line) };
    first.click();
    reported.toggle.after = visible(line);
    reported.toggle.pressed = first.getAttribute("aria-pressed");
    const plot = [...figure.querySelectorAll(".plot")].find((one) => visible(one.parentElement));
    const box = plot.getBoundingClientRect();
    plot.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width / 2, clientY: box.top + 5 }));
    reported.toggle.readout = readout(figure);
    reported.toggle.name = first.innerText.trim();
    first.click();
    reported.toggle.again = visible(line);
    const rows = () => [...figure.querySelectorAll(".row")].filter(visible).map((row) => row.className);
    reported.scale = { before: rows() };
    figure.querySelector("input[value=linear]").click();
    reported.scale.after = rows();
    const theme = document.querySelector("button.theme");
    const step = () => { theme.click(); return { name: theme.innerText, ground: colourOf("ground"), contrasts: contrasts() }; };
    reported.themes = [step(), step()];
    reported.tables = [...document.querySelectorAll(".sheet")].every((sheet) => sheet.scrollWidth <= sheet.clientWidth + 1 || sheet.tabIndex === 0);
    reported.unnamed = [...document.querySelectorAll("button, input, a, svg, table, nav, [role=region], [role=group]")].filter((node) => {
        if (node.closest("[aria-hidden=true]")) return false;
        const labelled = node.getAttribute("aria-label") || node.getAttribute("aria-labelledby");
        return !labelled && !node.innerText?.trim() && !node.closest("label") && !node.labels?.length;
    }).map((node) => node.outerHTML.slice(0, 120));
    const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map((heading) => Number(heading.tagName[1]));
    reported.headings = levels.every((level, at) => at === 0 || level <= levels[at - 1] + 1);
    // The page as a telephone has it: a frame of its width, which has media queries of its own.
    const frame = document.createElement("iframe");
    frame.style.cssText = "width:360px;height:800px;border:0";
    frame.srcdoc = "";
    document.body.append(frame);
    const inside = frame.contentDocument;
    inside.documentElement.replaceWith(inside.importNode(document.documentElement, true));
    inside.querySelectorAll("iframe, #reported").forEach((node) => node.remove());
    reported.phone = { width: inside.documentElement.clientWidth, reaches: inside.documentElement.scrollWidth };
    reported.phone.wide = [...inside.querySelectorAll("body *")].filter((node) => {
        const clipped = node.closest(".sheet, .hidden, .skip, svg");
        return !clipped && node.getBoundingClientRect().right > reported.phone.width + 1;
    }).slice(0, 5).map((node) => node.outerHTML.slice(0, 100));
    frame.remove();
    const out = document.body.appendChild(document.createElement("pre"));
    out.id = "probe-output";
    out.textContent = JSON.stringify(reported);
};
try { probe(); } catch (error) {
    const out = document.body.appendChild(document.createElement("pre"));
    out.id = "probe-output";
    out.textContent = JSON.stringify({ errors: [String(error), error.stack] });
}
