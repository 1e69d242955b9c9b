import type { Page } from 'playwright-core'

/** The names at which rows begin, and to which they lead, whose end is not to be seen within the table as it stands. */
export const namesBeyond = (page: Page): Promise<string[]> =>
  page.evaluate<string[]>(`(() => {
    const box = document.querySelector('.table-scroll')
    const edge = box.getBoundingClientRect().left + box.clientLeft + box.clientWidth
    const cells = document.querySelectorAll('.table-scroll tbody tr[data-index] :is(th, [data-row-link])')
    const cuts = new Set([...cells].flatMap((cell) => [...cell.querySelectorAll('.name-cut')]))
    return [...cuts].filter((cut) => {
      const [short, whole] = cut.children
      const around = cut.getBoundingClientRect()
      const cell = cut.closest('th, td').getBoundingClientRect()
      const isWhole = whole.getBoundingClientRect().top < around.bottom
      const isEndShown = isWhole ? whole.scrollWidth <= around.width + 1 : short.scrollWidth <= short.clientWidth
      return around.right > Math.min(edge, cell.right) + 1 || !isEndShown
    }).map((cut) => cut.lastElementChild.textContent)
  })()`)
