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

// The script or the style of the page was lost on the way, as where the network changes or the hub restarts: nothing else runs that
// could ask again. The page is loaded anew, three times at most, and then says so.
;(() => {
  const KEY = 'clusterpulse.loads'
  const root = () => document.getElementById('root')
  const loads = () => {
    try {
      return Number(sessionStorage.getItem(KEY))
    } catch {
      return 3 // nothing can be counted: rather not for ever
    }
  }
  let isLost = false
  addEventListener(
    'error',
    ({ target }) => {
      const isScript = target instanceof HTMLScriptElement && !root()?.hasChildNodes()
      const isStyle =
        target instanceof HTMLLinkElement && target.rel === 'stylesheet' && document.readyState !== 'complete'
      if (isLost || !(isScript || isStyle)) return
      isLost = true
      const before = loads()
      if (before < 3) {
        sessionStorage.setItem(KEY, String(before + 1))
        setTimeout(() => location.reload(), 300 * 4 ** before)
        return
      }
      const text = document.createElement('p')
      text.style.cssText =
        'max-width: 40rem; margin: 20vh auto; padding: 1rem; font: 1rem/1.5 system-ui; color: CanvasText'
      text.textContent =
        'The page could not be loaded: the hub did not send its script. It may be away, or the network was changed. Load the page again in a moment.'
      if (isScript) root()?.append(text)
    },
    true,
  )
  addEventListener('load', () => {
    if (!isLost && loads() > 0) sessionStorage.removeItem(KEY)
  })
})()
