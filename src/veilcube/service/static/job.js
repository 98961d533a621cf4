/* The page of a job: asks how far it is, and loads itself anew when it is over. */
"use strict";
(function () {
  const job = document.getElementById("job"), PAUSE = 700;
  if (job.dataset.over === "yes") return;
  async function look() {
    try {
      const answer = await fetch(job.dataset.json, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(answer.status);
      const found = await answer.json();
      if (found.is_over) return void location.reload();
      document.getElementById("state").textContent = found.step === found.state ? found.state : `${found.state}: ${found.step}`;
      const share = document.getElementById("share");
      if (found.share === null) share.removeAttribute("value");
      else share.value = found.share;
    } catch { /* the service may be starting again: ask once more */ }
    setTimeout(look, PAUSE);
  }
  setTimeout(look, PAUSE);
})();
