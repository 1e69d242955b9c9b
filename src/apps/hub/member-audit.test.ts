import { expect, it } from 'vitest'
import type { AuditEntry } from '#audit'
import { reviewsOfMembers } from './member-audit.ts'

const cluster = (isAccepted: boolean, annotations: Readonly<Record<string, string>> = {}) => ({
  ...{ apiVersion: 'cluster.open-cluster-management.io/v1', kind: 'ManagedCluster' },
  ...{ metadata: { name: 'east', annotations }, spec: { hubAcceptsClient: isAccepted } },
})

function aTrail() {
  const entries: AuditEntry[] = []
  let now = 1_000_000
  let uid = 0
  const tell = reviewsOfMembers(() => ({ record: (entry) => void entries.push(entry) }), {
    now: () => now,
    sleep: () => Promise.resolve(),
  })
  return {
    entries,
    routes: () => entries.map(({ route, username }) => `${username} ${route}`),
    pass(ms: number) {
      now += ms
    },
    /** As an API server asks, each time with an id of its own. */
    written: (isAccepted: boolean, username = 'ann', annotations?: Readonly<Record<string, string>>) =>
      tell({
        ...{ uid: `uid-${++uid}`, operation: 'UPDATE', name: 'east', userInfo: { username } },
        resource: { group: 'cluster.open-cluster-management.io', resource: 'managedclusters' },
        ...{ object: cluster(isAccepted, annotations), oldObject: cluster(!isAccepted) },
      }),
  }
}

it('has one line for one decision that the API server asked about twice, because another write came between', () => {
  const { written, routes } = aTrail()
  written(true)
  written(true)
  expect(routes()).toEqual(['ann cluster_accepted'])
})

it('has a line for each decision: of others, after another one, and later', () => {
  const { written, routes, pass } = aTrail()
  written(true)
  written(true, 'bob')
  written(false, 'bob')
  written(true, 'bob')
  pass(10_000)
  written(true, 'bob')
  expect(routes()).toEqual([
    ...['ann cluster_accepted', 'bob cluster_accepted', 'bob cluster_denied'],
    ...['bob cluster_accepted', 'bob cluster_accepted'],
  ])
})

it('names whom the page knows, with the id that its own trail has, beside the account that wrote', () => {
  const { written, entries } = aTrail()
  const said = { decision: 'accept', by: 'ann', request: 'id-of-the-page', at: 1_000_000 }
  const page = 'system:serviceaccount:clusterpulse:clusterpulse-api'
  written(true, page, { 'clusterpulse.io/decided': JSON.stringify(said) })
  // A person says there what it likes.
  written(false, 'bob', { 'clusterpulse.io/decided': JSON.stringify({ ...said, by: 'carol', request: 'other' }) })
  expect(entries).toMatchObject([
    {
      ...{ username: page, requestId: 'id-of-the-page', resource: 'managedcluster east' },
      ...{ route: 'cluster_accepted', reason: 'hubAcceptsClient is set to true, by ann on the page' },
    },
    { username: 'bob', route: 'cluster_denied', reason: 'hubAcceptsClient is set to false' },
  ])
})
