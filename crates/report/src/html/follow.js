"use strict";
// Keeps up with a run that goes on: reads the page again and puts its content in place of the old one.
(() => {
    const path = document.body.dataset.follow;
    if (!path) return;
    let seconds = Number(document.body.dataset.followSeconds) || 10;
    let etag = null;
    let failures = 0;
    let timer = 0;

    // What happens is announced; the time of the last look is only shown, since it changes every few seconds.
    const bar = document.createElement("p");
    bar.className = "follow";
    // As wide as the content below it.
    bar.style.cssText = "max-width: 76rem; margin: .75rem auto 0; padding: 0 1rem";
    const reported = document.createElement("span");
    reported.setAttribute("role", "status");
    reported.setAttribute("aria-live", "polite");
    const looked = document.createElement("span");
    bar.append(reported, " ", looked);
    document.querySelector("main").before(bar);

    const show = (text) => {
        if (reported.textContent !== text) reported.textContent = text;
    };
    const tellTime = () => {
        looked.textContent = "Last looked at " + new Date().toLocaleTimeString() + ".";
    };
    show("This run goes on; the page follows it.");
    tellTime();

    // By what an element is known again in the new content: its id, or where it stands, its kind, its label and its
    // place among equals.
    const keysOf = (root) => {
        const seen = new Map();
        const keyed = new Map();
        for (const element of root.querySelectorAll("details, [aria-pressed], input[type=radio], input[type=checkbox]")) {
            const label = element.tagName === "DETAILS" ? element.querySelector("summary") : element;
            const words = label ? label.getAttribute("aria-label") || label.textContent : "";
            const place = element.closest("[id]");
            const parts = [place ? place.id : "", element.tagName, element.name || "", element.value || "", words.trim()];
            const stem = element.id || parts.join("\u0000");
            const count = seen.get(stem) || 0;
            seen.set(stem, count + 1);
            keyed.set(stem + "\u0000" + count, element);
        }
        return keyed;
    };
    const stateOf = (element) => {
        if (element.tagName === "DETAILS") return element.open;
        if (element.tagName === "INPUT") return element.checked;
        return element.getAttribute("aria-pressed");
    };
    const setState = (element, state) => {
        if (element.tagName === "DETAILS") element.open = state;
        else if (element.tagName === "INPUT") element.checked = state;
        // Pressing it lets the charts' own script do what belongs to it.
        else if (element.getAttribute("aria-pressed") !== state) element.click();
    };

    const replace = (fresh) => {
        const old = document.querySelector("main");
        const states = new Map();
        let focused = null;
        for (const [key, element] of keysOf(old)) {
            states.set(key, stateOf(element));
            const holder = element.tagName === "DETAILS" ? element.querySelector("summary") : element;
            if (holder && holder === document.activeElement) focused = key;
        }
        const boxes = [...old.querySelectorAll("[tabindex='0'], .scroll")].map((box) => box.scrollLeft);
        const across = window.scrollX;
        const down = window.scrollY;
        const main = document.importNode(fresh, true);
        old.replaceWith(main);
        document.dispatchEvent(new Event("plimsoll:replaced"));
        for (const [key, element] of keysOf(main)) {
            if (states.has(key)) setState(element, states.get(key));
            if (key === focused) {
                const holder = element.tagName === "DETAILS" ? element.querySelector("summary") : element;
                holder.focus({ preventScroll: true });
            }
        }
        [...main.querySelectorAll("[tabindex='0'], .scroll")].forEach((box, place) => {
            if (boxes[place]) box.scrollLeft = boxes[place];
        });
        window.scrollTo(across, down);
    };

    const end = (text) => {
        show(text);
        tellTime();
        delete document.body.dataset.follow;
    };

    const look = async () => {
        try {
            const headers = etag ? { "If-None-Match": etag } : {};
            const reply = await fetch(path, { headers, cache: "no-store", credentials: "same-origin" });
            if (reply.status === 404) return end("The run is not there any more.");
            if (reply.status !== 304) {
                if (!reply.ok) throw new Error(String(reply.status));
                const page = new DOMParser().parseFromString(await reply.text(), "text/html");
                const fresh = page.querySelector("main");
                if (!fresh) throw new Error("no content");
                etag = reply.headers.get("ETag");
                replace(fresh);
                document.title = page.title;
                if (!page.body.dataset.follow) return end("The run has ended; this is all of it.");
                seconds = Number(page.body.dataset.followSeconds) || seconds;
            }
            failures = 0;
            show("This run goes on; the page follows it.");
            tellTime();
        } catch {
            failures += 1;
            show("The server does not answer; what is shown may be old. Trying again.");
        }
        wait();
    };

    const wait = () => {
        clearTimeout(timer);
        timer = setTimeout(soon, 1000 * Math.min(60, seconds * (1 + failures)));
    };
    // A page that nobody sees asks for nothing; it looks as soon as somebody does.
    const soon = () => {
        if (document.hidden) document.addEventListener("visibilitychange", soon, { once: true });
        else look();
    };
    wait();
})();
