import { expect, it } from 'vitest'
import type { Row } from '#extract'
import { incompleteTargets } from '#model'
import type { InventoryInformers } from '../objects.ts'
import { RowStore } from '../store/index.ts'
import { InventoryFeed } from './inventory-feed.ts'

type Targets = Pick<InventoryInformers, 'targets' | 'clusterTargets'>

/** Informers of these targets, of which nothing else is asked. */
const informers = (targets: readonly object[], clusterTargets: readonly object[]): Targets =>
  Object.fromEntries(
    Object.entries({ targets, clusterTargets }).map(([name, list]) => [
      name,
      { isSynced: true, list: () => list, onChange: () => () => undefined },
    ]),
  ) as unknown as Targets // all that a feed asks them

const aRow = (targetNamespace: string, targetName: string): Row => ({
  ...{ targetNamespace, targetName, namespace: 'shop', name: 'web', uid: 'u' },
  ...{ group: 'apps', version: 'v1', kind: 'Deployment', attributes: {} },
})

it('names each target of which it lacks rows as the rows do, and none that is read or deleted', () => {
  const store = new RowStore(() => undefined)
  const named = (name: string, namespace?: string) => ({ metadata: { name, ...(namespace && { namespace }) } })
  const read = store.target({ namespace: 'a', name: 'read' })
  read.put([aRow('a', 'read')])
  read.setComplete(true)
  store.target({ namespace: 'b', name: 'half' }).put([aRow('b', 'half')])
  store.target({ namespace: '', name: 'all' }).put([aRow('', 'all')])
  const deleted = store.target({ namespace: 'd', name: 'deleted' })
  deleted.put([aRow('d', 'deleted')])
  deleted.drop()
  const targets = [named('read', 'a'), named('half', 'b'), named('unread', 'b')]
  const told = new InventoryFeed(store, informers(targets, [named('all')])).read()
  if (told.outcome !== 'complete') throw new Error('it is told')
  const incomplete = incompleteTargets(told)
  expect(incomplete).toEqual(new Set(['b/half', 'b/unread', 'all']))
  const shown = [...told.rows.rows()].map(({ values }) => values.target)
  expect(shown.sort()).toEqual(['a/read', 'all', 'b/half'])
})
