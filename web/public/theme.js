// Runs before the first paint, so that no theme flashes: the stored choice, else what the system prefers.
;(() => {
  let choice = 'system'
  try {
    choice = localStorage.getItem('clusterpulse.theme') || 'system'
  } catch {
    // Storage may be forbidden; the system's preference then decides.
  }
  const dark = choice === 'dark' || (choice !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches)
  document.documentElement.dataset.theme = dark ? 'dark' : 'light'
})()
