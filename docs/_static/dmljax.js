// Marks figures and tables that scroll in their place. The style sheet says so there.
const PLACES = "article :is(p, figure, .table-wrapper)";
const mark = () => {
  for (const place of document.querySelectorAll(PLACES))
    place.classList.toggle("scrolls", place.scrollWidth > place.clientWidth + 1);
};
addEventListener("load", mark);
addEventListener("resize", mark);
