import { describe, expect, it, vi } from 'vitest'
import type { ColumnView } from '../../contract.ts'
import { linkPath } from '../../model/link-path.ts'
import { rowsQuestion } from '../../model/row-values.ts'
import { parseRoute } from '../../router.tsx'
import { referringPath } from './row-links.tsx'

// The router reads the place of the page when it is loaded.
vi.hoisted(() => {
  const location = { pathname: '/', search: '', hash: '' }
  vi.stubGlobal('window', { location, history: { state: null }, addEventListener: () => undefined })
})

const placeOf = (path: string) => {
  const [page = '', query = ''] = path.split('?')
  return { route: parseRoute(page), query: Object.fromEntries(new URLSearchParams(query)) }
}

describe('a link of a row', () => {
  it.each([
    ['a node', { type: 'nodes', id: 'n1.example.com' }, { tab: 'nodes', node: 'n1.example.com', type: null }, {}],
    ['a namespace', { type: 'namespaces', id: 'shop' }, { tab: 'namespaces', object: 'shop' }, {}],
    [
      'a workload',
      { type: 'workloads', id: 'shop/web:Deployment' },
      { tab: 'types', type: 'workloads', object: 'shop/web:Deployment' },
      {},
    ],
    [
      'a row',
      { type: 'core/workloads', id: 'shop/web:Deployment' },
      { tab: 'types', type: 'core/workloads' },
      { row: 'shop/web:Deployment' },
    ],
  ])('leads to %s', (_, link, route, query) => {
    const place = placeOf(linkPath('west', { column: null, ...link }))
    expect(place.route).toMatchObject({ page: 'cluster', name: 'west', ...route })
    expect(place.query).toEqual(query)
  })

  it('asks for the rows that name an object in words that the table understands', () => {
    const row = { namespace: 'shop', reference: 'Deployment/web-1' }
    const place = placeOf(referringPath('west', row, { type: 'pods', column: 'workload' }))
    expect(place.route).toMatchObject({ tab: 'types', type: 'pods' })
    const workload = {
      name: 'workload',
      kind: 'string',
      unit: 'none',
      computed: false,
      label: 'Workload',
      extra: false,
      restricted: false,
      absence: 'none' as const,
      health: null,
      amount: null,
    }
    const columns: ColumnView[] = [{ ...workload, kind: 'string', unit: 'none', refersTo: 'object' }]
    expect(rowsQuestion(place.query.q ?? '', columns)).toEqual({
      question: { namespace: 'shop', where: ['workload=Deployment/web-1'] },
      faults: [],
    })
  })
})
