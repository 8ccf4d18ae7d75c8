{
  const PASSES_A_SECOND = 8;
  const WORDS_A_SECOND = 200 / 60, SECONDS_TO_LOOK = 2;
  const [WAITING, RUNNING, EXPLAINED] = [0, 1, 2];
  const all = (parent, selector) => [...parent.querySelectorAll(selector)];

  const unpacked = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };

  const begin = (film) => {
    const scenes = all(document, ".scene").map((section) => ({
      section,
      title: section.querySelector("h2").textContent,
      cards: all(section, ".card"),
      runs: all(section, ".run").map((run) => ({ run, spans: all(run, ".answer > span") })),
      now: section.querySelector(".now"),
    }));
    const links = all(document, ".contents a");
    const moments = film.scenes.flatMap((each, scene) => each.map(
      ([card, phase, runs, steps, picture]) => ({ scene, card, phase, runs, steps, picture }),
    ));

    const row = (number) => [
      ...film.rows[number].map(([look, text]) => {
        const span = document.createElement("span");
        span.className = `s${look}`;
        span.textContent = text;
        return span;
      }),
      "\n",
    ];
    const mark = (card, phase) => {
      card.classList.toggle("running", phase === RUNNING);
      all(card, ".text, .true").forEach((one) => { one.hidden = phase !== EXPLAINED; });
      const outcome = card.querySelector(".outcome");
      if (!outcome) return;
      outcome.open = true;
      outcome.querySelector("summary").hidden = phase !== WAITING;
      all(card, ".choices button").forEach((choice, index) => {
        const came = String(index) === outcome.dataset.outcome, chosen = String(index) === card.dataset.chosen;
        choice.dataset.mark = phase !== EXPLAINED ? "" : came ? "✓" : chosen ? "✗" : "";
        choice.classList.toggle("chosen", chosen);
        choice.disabled = phase !== WAITING;
      });
    };
    const show = (index) => {
      const moment = moments[index];
      scenes.forEach(({ section }, place) => { section.hidden = place !== moment.scene; });
      links.forEach((link, place) => link.classList.toggle("chosen", place === moment.scene));
      const { cards, runs, now } = scenes[moment.scene];
      cards.forEach((card, place) => { card.hidden = place !== moment.card; });
      mark(cards[moment.card], moment.phase);
      runs.forEach(({ run, spans }, place) => {
        run.hidden = place !== Math.max(moment.runs - 1, 0);
        written(spans, moment.runs ? moment.steps : 0);
      });
      now?.replaceChildren(...moment.picture.flatMap(row));
    };
    const say = (index) => {
      const { scene, card, runs, steps } = moments[index];
      const pass = runs ? ` · pass ${steps}` : "";
      return `scene ${scenes[scene].title} · card ${card + 1} of ${scenes[scene].cards.length}${pass}`;
    };
    const played = player(document.querySelector(".player"), show, say);

    const seconds = ({ scene, card, phase }) => {
      if (phase === RUNNING) return 1 / PASSES_A_SECOND;
      const element = scenes[scene].cards[card];
      if (phase === WAITING && element.querySelector(".outcome")) return Infinity;
      const words = element.querySelector(phase === WAITING ? ".asked" : ".text").textContent.split(/\s+/).length;
      return SECONDS_TO_LOOK + words / WORDS_A_SECOND;
    };
    const choose = (choice) => {
      const { scene, card, phase } = moments[played.at];
      const element = scenes[scene].cards[card];
      if (phase !== WAITING || choice >= all(element, ".choices button").length) return;
      element.dataset.chosen = choice;
      played.play(played.at + 1);
    };
    all(document, ".choices").forEach((list) => all(list, "li").forEach((item, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = item.textContent;
      button.addEventListener("click", () => choose(index));
      item.replaceChildren(button);
    }));
    all(document, ".outcome > summary").forEach((summary) => summary.addEventListener("click", (event) => {
      event.preventDefault();
      played.play(played.at + 1);
    }));
    const follow = () => {
      const named = scenes.findIndex(({ section }) => `#${section.id}` === location.hash);
      return Math.max(moments.findIndex(({ scene }) => scene === named), 0);
    };
    addEventListener("hashchange", () => played.play(follow()));
    links.forEach((link) => link.addEventListener("click", (event) => {
      event.preventDefault();  // which would scroll
      history.replaceState(null, "", link.hash);
      played.play(follow());
    }));
    scenes.forEach(({ runs }, scene) => runs.forEach(({ spans }, run) => spans.forEach((span, step) => {
      span.addEventListener("click", () => played.go(
        moments.findIndex((one) => one.scene === scene && one.runs === run + 1 && one.steps === step + 1),
      ));
    })));
    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      if (/^[1-9]$/.test(event.key)) choose(Number(event.key) - 1);
      if (event.key !== "Enter" || event.target.matches("a, button, summary")) return;
      const next = moments.findIndex(({ phase }, index) => index > played.at && phase !== RUNNING);
      if (next > 0) played.play(next);
    });
    document.documentElement.classList.add("live");
    played.set(moments.map((_, index) => index), moments.map(seconds));
    played.begin(follow());
    scrollTo(0, 0);
  };

  if ("DecompressionStream" in window) unpacked(document.querySelector(".film").textContent).then(begin);
}
