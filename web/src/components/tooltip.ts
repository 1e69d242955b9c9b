/**
 * One tip for the whole page: whatever carries `data-tip` shows it on hover and on focus. Escape takes it away, the
 * pointer may rest on it. The same text is in the document for screen readers, so the tip itself is hidden from them.
 */
export function installTooltip(): void {
  const tip = document.createElement('div')
  tip.className = 'tip'
  tip.popover = 'manual'
  tip.setAttribute('aria-hidden', 'true')
  document.body.append(tip)
  let owner: Element | null = null

  const hide = () => {
    if (owner) tip.hidePopover()
    owner = null
  }
  const show = (target: EventTarget | null) => {
    if (target === tip) return
    const next = target instanceof Element ? target.closest('[data-tip]') : null
    if (next === owner) return
    hide()
    const text = next?.getAttribute('data-tip')
    if (!next || !text) return
    owner = next
    tip.textContent = text
    tip.showPopover()
    const box = next.getBoundingClientRect()
    const left = Math.min(Math.max(8, box.left + box.width / 2 - tip.offsetWidth / 2), innerWidth - tip.offsetWidth - 8)
    const above = box.top - tip.offsetHeight - 6
    tip.style.left = `${left}px`
    tip.style.top = `${above > 4 ? above : box.bottom + 6}px`
  }
  document.addEventListener('pointerover', (event) => show(event.target))
  document.addEventListener('focusin', (event) => show(event.target))
  document.addEventListener('focusout', hide)
  document.addEventListener('scroll', hide, { capture: true, passive: true })
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') hide()
  })
}
