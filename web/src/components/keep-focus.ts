/** What had the focus may be gone: it does not fall back to the top of the page. */
export function keepFocus(): void {
  if (document.activeElement === document.body) document.getElementById('main')?.focus({ preventScroll: true })
}
