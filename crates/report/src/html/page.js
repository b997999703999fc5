"use strict";
// What a page gains where scripts run: values under the pointer and by arrow keys, series that can be put away, and a choice
// between light and dark. Without it every chart is there all the same.
(() => {
    const group = (value, decimals) =>
        value.toLocaleString("en-US", { maximumFractionDigits: decimals, minimumFractionDigits: 0 });
    const digits = (value) => {
        if (value === 0) return "0";
        const decimals = Math.min(9, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value)))));
        return group(value, decimals);
    };
    const duration = (us) => {
        if (us === 0) return "0";
        if (us < 1) return digits(us * 1e3) + " ns";
        if (us < 1e3) return digits(us) + " us";
        if (us < 1e6) return digits(us / 1e3) + " ms";
        return digits(us / 1e6) + " s";
    };
    const elapsed = (s) => {
        const whole = Math.floor(s);
        const [h, m] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
        const rest = digits(Math.round((s - h * 3600 - m * 60) * 10) / 10);
        return (h ? h + " h " : "") + (h || m ? m + " min " : "") + rest + " s";
    };
    const words = {
        per_second: (value) => digits(value) + "/s",
        microseconds: duration,
        log_microseconds: (value) => duration(2 ** value),
        elapsed,
        clock: (s) => new Date(s * 1e3).toISOString().slice(0, 16).replace("T", " "),
        percent: (value) => digits(value) + " %",
        mebibytes: (value) => value < 1024 ? digits(value) + " MiB" : digits(value / 1024) + " GiB",
        count: digits,
        nines: (value) => "p" + (100 - 100 * 10 ** -value).toFixed(Math.min(6, Math.max(0, Math.floor(value) - 1))),
    };

    // The place of the value nearest to x. Lines of a curve may turn back, so that only time can be searched by halving.
    const nearest = (xs, x) => {
        let best = -1;
        for (let at = 0; at < xs.length; at += 1) {
            if (xs[at] !== null && (best < 0 || Math.abs(xs[at] - x) < Math.abs(xs[best] - x))) best = at;
        }
        return best;
    };

    const element = (name, className, text) => {
        const made = document.createElement(name);
        if (className) made.className = className;
        if (text !== undefined) made.textContent = text;
        return made;
    };

    class Chart {
        constructor(figure, data) {
            this.figure = figure;
            this.data = data;
            this.off = new Set();
            this.at = null;
            this.buttons = [...figure.querySelectorAll(".legend button")];
            this.reported = figure.appendChild(element("p", "hidden"));
            this.reported.setAttribute("aria-live", "polite");
            this.buttons.forEach((button) => {
                button.disabled = false;
                button.addEventListener("click", () => this.toggle(button));
                if (button.getAttribute("aria-pressed") === "false") this.toggle(button, true);
            });
            figure.querySelectorAll(".plot").forEach((plot) => this.watch(plot));
        }

        toggle(button, already = false) {
            const series = Number(button.dataset.series);
            const isOff = already || button.getAttribute("aria-pressed") === "true";
            button.setAttribute("aria-pressed", String(!isOff));
            if (isOff) this.off.add(series);
            else this.off.delete(series);
            this.figure.querySelectorAll(`g[data-series="${series}"]`).forEach((g) => g.classList.toggle("off", isOff));
        }

        watch(plot) {
            const move = (event) => {
                const box = plot.getBoundingClientRect();
                this.show(plot, (event.clientX - box.left) / box.width);
            };
            plot.addEventListener("pointermove", move);
            plot.addEventListener("pointerdown", move);
            plot.addEventListener("pointerleave", () => this.hide(plot));
            plot.addEventListener("blur", () => this.hide(plot));
            plot.addEventListener("keydown", (event) => this.key(plot, event));
        }

        key(plot, event) {
            const steps = this.places();
            const moves = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity };
            if (event.key === "Escape") this.hide(plot);
            if (!(event.key in moves) || steps.length === 0) return;
            event.preventDefault();
            const from = this.at === null ? (moves[event.key] > 0 ? -1 : steps.length) : this.at;
            this.at = Math.min(steps.length - 1, Math.max(0, from + moves[event.key]));
            this.reported.textContent = this.show(plot, steps[this.at], true);
        }

        // Where values stand, 0 to 1, for those who go from one to the next.
        places() {
            const { places, columns, x, series } = this.data;
            if (places) return places.map((_, at) => (at + 0.5) / places.length);
            const share = (value) => (value - x.low) / (x.high - x.low);
            if (columns) return columns.map(([from, to]) => share((from + to) / 2));
            const longest = series.reduce((most, one) => (one.x.length > most.length ? one.x : most), []);
            return longest.filter((value) => value !== null).sort((a, b) => a - b).map(share);
        }

        // What is at a place: a heading, and lines of series, name and value.
        read(share) {
            const { places, columns, x, y, series } = this.data;
            const shown = (series || []).map((one, number) => [one, number]).filter(([, number]) => !this.off.has(number));
            if (places) {
                const at = Math.min(places.length - 1, Math.max(0, Math.floor(share * places.length)));
                const lines = shown.map(([one, number]) => [number, one.name, one.words[at]]);
                return { share: (at + 0.5) / places.length, heading: places[at], lines };
            }
            const value = x.low + share * (x.high - x.low);
            if (columns) {
                const column = columns.find(([, to]) => value < to) || columns[columns.length - 1];
                const heading = `${words[x.quantity](column[0])} to ${words[x.quantity](column[1])}`;
                return { share, heading, lines: [[null, column[2], ""]] };
            }
            let found = null;
            const lines = [];
            for (const [one, number] of shown) {
                const at = nearest(one.x, value);
                if (at < 0) continue;
                if (found === null || Math.abs(one.x[at] - value) < Math.abs(found - value)) found = one.x[at];
                lines.push([number, one.name, words[y](one.y[at]), one.x[at]]);
            }
            if (found === null) return null;
            // A value that lies elsewhere says so.
            const width = (x.high - x.low) / 50;
            const near = lines.map(([number, name, reported, at]) =>
                Math.abs(at - found) <= width ? [number, name, reported] : [number, name, "no value here"]);
            return { share: (found - x.low) / (x.high - x.low), heading: words[x.quantity](found), lines: near };
        }

        show(plot, share) {
            const read = this.read(Math.min(1, Math.max(0, share)));
            this.hide(plot);
            if (read === null) return "";
            const cursor = plot.appendChild(element("div", "cursor"));
            cursor.style.left = `${read.share * 100}%`;
            const box = plot.appendChild(element("div", "readout"));
            box.append(element("b", "", read.heading));
            for (const [number, name, reported] of read.lines) {
                const line = box.appendChild(element("div"));
                if (number !== null && read.lines.length > 1) {
                    const { colour } = (this.data.series || [])[number] || {};
                    line.append(element("i", colour || `c${number % 8}`));
                }
                line.append(element("span", "text", name), element("em", "", reported));
            }
            if (read.share < 0.5) box.style.left = `calc(${read.share * 100}% + .6rem)`;
            else box.style.right = `calc(${(1 - read.share) * 100}% + .6rem)`;
            return `${read.heading}: ${read.lines.map(([, name, reported]) => `${name} ${reported}`).join(", ")}`;
        }

        hide(plot) {
            plot.querySelectorAll(".cursor, .readout").forEach((shown) => shown.remove());
        }
    }

    const attach = () => {
        const data = document.getElementById("charts");
        if (!data) return;
        for (const one of JSON.parse(data.textContent)) {
            const figure = document.getElementById(one.id);
            if (figure) new Chart(figure, one);
        }
        document.documentElement.dataset.charts = "ready";
    };

    // A file may not be allowed to remember anything; then the choice lasts as long as the page.
    const remembered = {
        get: () => { try { return localStorage.getItem("plimsoll-theme"); } catch { return null; } },
        set: (theme) => { try { localStorage.setItem("plimsoll-theme", theme); } catch { /* nothing to remember it in */ } },
    };
    const themes = ["auto", "light", "dark"];
    const theme = () => {
        const button = element("button", "theme");
        button.type = "button";
        const set = (name) => {
            if (name === "auto") delete document.documentElement.dataset.theme;
            else document.documentElement.dataset.theme = name;
            button.textContent = `Colours: ${name}`;
        };
        let now = themes.includes(remembered.get()) ? remembered.get() : "auto";
        set(now);
        button.addEventListener("click", () => {
            now = themes[(themes.indexOf(now) + 1) % themes.length];
            set(now);
            remembered.set(now);
        });
        document.querySelector("header.top").append(button);
    };

    theme();
    attach();
    document.addEventListener("plimsoll:replaced", attach);
})();
