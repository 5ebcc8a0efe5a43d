// How the search ranks pages: by the words of their titles, the background last.
var Scorer = {
  score([page, title, , , score]) {
    const stems = (text) => splitQuery(text.toLowerCase()).map((word) => new Stemmer().stemWord(word));
    const query = new URLSearchParams(window.location.search).get("q") ?? "";
    const asked = stems(query).filter((stem) => stems(title).some((word) => word.startsWith(stem)));
    const named = asked.filter((stem) => !stopwords.has(stem)).length;
    return (score + 10 * named) / (/^(benchmarks|decisions|studies)/.test(page) ? 10 : 1);
  },
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
