// Labels the cells of wide tables with their column, for narrow screens; see site.css.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll(".bd-article table.table")) {
    const labels = [...table.querySelectorAll("thead th")].map((head) => head.textContent.trim());
    if (labels.length < 4 || table.closest(".cell_output")) continue;
    table.classList.add("site-wide");
    for (const row of table.tBodies[0].rows)
      [...row.cells].forEach((cell, column) => {
        if (cell.textContent.trim()) cell.dataset.label = labels[column];
      });
  }
});
