import { describe, expect, it } from 'vitest'
import { pvcSource as source } from '../../testing/customs.ts'
import { ApiProblem, type TableRowView } from '../contract.ts'
import { firstPageSize, type Paged, pageSize, RowPages, type RowsAnswer } from './row-pages.ts'

const anyPage = (items: TableRowView[], total: number, next: string | null): RowsAnswer => {
  const on = {
    cluster: 'west',
    displayName: '',
    part: { outcome: 'complete' as const, code: '', message: '', attemptedAt: 0, freshness: null, count: total },
    truncated: false,
    errors: [],
    errorCount: 0,
    outdated: false,
    stale: false,
    filtered: false,
    aggregations: null,
  }
  return { items: items.map((one) => ({ ...one, cluster: 'west', rowId: one.id })), total, next, source, on: [on] }
}
const row = (name: string, values: TableRowView['values'] = {}): TableRowView => ({
  id: name,
  namespace: '',
  name,
  labels: {},
  values,
})

/** Rows that a test may change while somebody looks. */
function aHub(count: number) {
  const hub = {
    rows: Array.from({ length: count }, (_, index) => row(`r${String(index).padStart(6, '0')}`)),
    delayMs: 0,
    asked: [] as { cursor?: string; limit: number }[],
    refusal: null as ApiProblem | null,
    shown: { state: 'waiting' } as Paged,
  }
  const pages = new RowPages({
    ask: async (page) => {
      hub.asked.push(page)
      await (hub.delayMs > 0 ? new Promise((resolve) => setTimeout(resolve, hub.delayMs)) : Promise.resolve())
      if (hub.refusal) throw hub.refusal
      const from = page.cursor === undefined ? 0 : hub.rows.findIndex(({ name }) => name > (page.cursor ?? ''))
      const items = hub.rows.slice(from, from + page.limit)
      const more = from + page.limit < hub.rows.length
      return anyPage(items, hub.rows.length, more ? (items.at(-1)?.name ?? null) : null)
    },
    onChange: (paged) => {
      hub.shown = paged
    },
  })
  const names = () => (hub.shown.state === 'here' ? [...hub.shown.rows.keys()] : [])
  const settle = async (until: () => boolean) => expect.poll(until).toBe(true)
  return { hub, pages, names, settle }
}
const problem = (status: number) => new ApiProblem(status, { error: 'no', code: 'no', requestId: '' })

describe('RowPages', () => {
  it('asks for a small page first and for no more until somebody looks further', async () => {
    const { hub, pages, names, settle } = aHub(5000)
    pages.refresh()
    await settle(() => names().length === firstPageSize)
    expect(hub.asked).toEqual([{ limit: firstPageSize }])
    pages.want(500)
    // As many as the stream tells: what was read ahead is all kept true by it.
    await settle(() => names().length === pageSize)
    pages.want(400)
    expect(hub.asked).toHaveLength(2)
    pages.want(100_000)
    await settle(() => names().length === 5000)
    expect(hub.shown).toMatchObject({ isWhole: true })
    expect(names()).toEqual(names().toSorted())
  })
  it('replaces all that is loaded at once when it is read again', async () => {
    const { hub, pages, names, settle } = aHub(2000)
    pages.refresh()
    pages.want(900)
    await settle(() => names().length === 1000)
    hub.rows = hub.rows.filter(({ name }) => name !== 'r000003').map((each) => row(each.name, { new: true }))
    hub.rows.unshift(row('a first one'))
    pages.refresh()
    await settle(() => names()[0] === 'a first one')
    expect(names()).not.toContain('r000003')
    expect(names().length).toBeGreaterThanOrEqual(1000)
    if (hub.shown.state !== 'here') throw new Error('nothing is shown')
    expect([...hub.shown.rows.values()].slice(1).every(({ values }) => values.new === true)).toBe(true)
  })
  it('lets whoever scrolls go before a refresh, and refreshes then', async () => {
    const { hub, pages, names, settle } = aHub(9000)
    pages.refresh()
    pages.want(4000)
    await settle(() => names().length === 4000)
    hub.rows = hub.rows.map(({ name }) => row(name, { new: true }))
    const before = hub.asked.length
    pages.refresh()
    pages.want(5000)
    await settle(() => names().length === 5000)
    // The read that was under way is left for the page that is wanted.
    expect(hub.asked[before + 1]?.cursor).toBe('r003999')
    await settle(
      () => hub.shown.state === 'here' && [...hub.shown.rows.values()].every(({ values }) => values.new === true),
    )
    expect(names()).toHaveLength(5000)
  })
  it('does not read again at once what took long to read, and forgets nobody who asked for it', async () => {
    const { hub, pages, names, settle } = aHub(10)
    hub.delayMs = 40
    pages.refresh()
    await settle(() => names().length === 10)
    const before = hub.asked.length
    for (let turn = 0; turn < 100; turn++) pages.refreshInTurn()
    hub.rows.push(row('r999999'))
    expect(hub.asked.length).toBe(before)
    await settle(() => names().length === 11)
    expect(hub.asked.length).toBe(before + 1)
  })
  it('reads nothing in its turn once it has ended', async () => {
    const { hub, pages, names, settle } = aHub(10)
    hub.delayMs = 10
    pages.refresh()
    await settle(() => names().length === 10)
    const before = hub.asked.length
    pages.refreshInTurn()
    pages.end()
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(hub.asked.length).toBe(before)
  })
  it('shows a row once that moved between two pages', async () => {
    const { hub, pages, names, settle } = aHub(firstPageSize + 5)
    pages.refresh()
    await settle(() => names().length === firstPageSize)
    hub.rows.push(row('r999999'), { ...row('r000001'), name: 'r999998' })
    pages.want(300)
    await settle(() => names().length > firstPageSize)
    expect(new Set(names()).size).toBe(names().length)
  })
  it('keeps what it shows while the hub is away, and nothing when it refuses', async () => {
    const { hub, pages, names, settle } = aHub(10)
    pages.refresh()
    await settle(() => names().length === 10)
    hub.refusal = problem(503)
    pages.refresh()
    await settle(() => hub.shown.state === 'here' && hub.shown.problem?.status === 503)
    expect(names()).toHaveLength(10)
    hub.refusal = null
    pages.refresh()
    await settle(() => hub.shown.state === 'here' && hub.shown.problem === null)
    hub.refusal = problem(404)
    pages.refresh()
    await settle(() => hub.shown.state === 'failed')
    expect(names()).toEqual([])
  })
  it('asks again what fails after it was asked for again, and shows no problem of before', async () => {
    const { hub, pages, names, settle } = aHub(10)
    hub.delayMs = 200
    pages.refresh()
    await settle(() => names().length === 10)
    hub.refusal = problem(0)
    pages.refresh()
    pages.refresh()
    const problems: unknown[] = []
    await settle(() => hub.asked.length === 3)
    hub.refusal = null
    await settle(() => {
      if (hub.shown.state === 'here') problems.push(hub.shown.problem)
      return !pages.isAsking
    })
    expect(new Set(problems)).toEqual(new Set([null]))
    expect(hub.asked).toHaveLength(3)
  })
  it('waits for no look that hangs once it is asked for again', async () => {
    let asked = 0
    let shown: Paged = { state: 'waiting' }
    const pages = new RowPages({
      ask: (_, signal) =>
        asked++ > 0
          ? Promise.resolve(anyPage([row('a')], 1, null))
          : new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      onChange: (paged) => {
        shown = paged
      },
    })
    pages.refresh()
    pages.again()
    await expect.poll(() => shown.state).toBe('here')
    expect(asked).toBe(2)
  })
  it('ends with no rows, and not without an end, where a page is empty', async () => {
    const { hub, pages, settle } = aHub(0)
    pages.refresh()
    pages.want(1000)
    await settle(() => hub.shown.state === 'here')
    expect(hub.shown).toMatchObject({ isWhole: true })
    expect(hub.asked).toHaveLength(1)
  })
  it('says nothing any more once it has ended', async () => {
    const { hub, pages } = aHub(10)
    pages.refresh()
    pages.end()
    await Promise.resolve()
    await Promise.resolve()
    await Promise.resolve()
    pages.refresh()
    expect(hub.shown.state).toBe('waiting')
  })
})
