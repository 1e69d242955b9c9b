import { expect, it } from 'vitest'
import type { AdmittedWrite } from '#apiserver'
import type { AuditEntry } from '#audit'
import { observerOfMembers, reviewsOfMembers } from './member-audit.ts'

const cluster = (isAccepted: boolean, annotations: Readonly<Record<string, string>> = {}) => ({
  ...{ apiVersion: 'cluster.open-cluster-management.io/v1', kind: 'ManagedCluster' },
  ...{ metadata: { name: 'east', annotations }, spec: { hubAcceptsClient: isAccepted } },
})

function aTrail() {
  const entries: AuditEntry[] = []
  let now = 1_000_000
  let uid = 0
  const trail = { record: (entry: AuditEntry) => void entries.push(entry), flush: () => Promise.resolve() }
  const tell = reviewsOfMembers(() => trail, {
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

it('has one line for one decision that the API server asked about twice, because another write came between', async () => {
  const { written, routes } = aTrail()
  await written(true)
  await written(true)
  expect(routes()).toEqual(['ann cluster_accepted'])
})

it('has a line for each decision: of others, after another one, and later', async () => {
  const { written, routes, pass } = aTrail()
  await written(true)
  await written(true, 'bob')
  await written(false, 'bob')
  await written(true, 'bob')
  pass(10_000)
  await written(true, 'bob')
  expect(routes()).toEqual([
    ...['ann cluster_accepted', 'bob cluster_accepted', 'bob cluster_denied'],
    ...['bob cluster_accepted', 'bob cluster_accepted'],
  ])
})

it('names whom the page knows, with the id that its own trail has, beside the account that wrote', async () => {
  const { written, entries } = aTrail()
  const said = { decision: 'accept', by: 'ann', request: 'id-of-the-page', at: 1_000_000 }
  const page = 'system:serviceaccount:clusterpulse:clusterpulse-api'
  await written(true, page, { 'clusterpulse.io/decided': JSON.stringify(said) })
  // A person says there what it likes.
  await written(false, 'bob', { 'clusterpulse.io/decided': JSON.stringify({ ...said, by: 'carol', request: 'other' }) })
  expect(entries).toMatchObject([
    {
      ...{ username: page, requestId: 'id-of-the-page', resource: 'managedcluster east' },
      ...{ route: 'cluster_accepted', reason: 'hubAcceptsClient is set to true, by ann on the page' },
    },
    { username: 'bob', route: 'cluster_denied', reason: 'hubAcceptsClient is set to false' },
  ])
})

/** A write to the embedded API, by ann unless it says so. */
const aWrite = (name = 'ann', before: object = cluster(true)): AdmittedWrite => ({
  ...{
    id: 'id-1',
    address: '',
    user: { name, groups: [] },
    operation: 'UPDATE',
    name: 'east',
    nowMs: 1,
    dryRun: false,
  },
  ...{ group: 'cluster.open-cluster-management.io', resource: 'managedclusters' },
  ...{ object: cluster(false), before: before as AdmittedWrite['before'] },
})

/** What the hub's trail has, and whether somebody waits until that is written. */
function anObserver() {
  const entries: AuditEntry[] = []
  let release: () => void = () => undefined
  const written = new Promise<void>((resolve) => {
    release = resolve
  })
  let waiting = 0
  const trail = {
    record: (entry: AuditEntry) => void entries.push(entry),
    flush() {
      waiting++
      return written
    },
  }
  const observer = observerOfMembers(
    () => trail,
    'hub',
    () => undefined,
  )
  return { entries, observer, isWaiting: () => waiting > 0, written: () => release() }
}

it('has what was answered of a decision that the embedded API could not store', async () => {
  const { entries, observer, written } = anObserver()
  written()
  const failure = { httpCode: 507, message: 'the disk is full: nothing was written' }
  await observer.wrote(aWrite(), failure)
  await observer.wrote({ ...aWrite(), operation: 'DELETE', object: undefined }, failure)
  await observer.wrote(aWrite())
  expect(entries.map(({ route, status, reason }) => [route, status, reason])).toEqual([
    ['cluster_denied', 507, 'hubAcceptsClient is set to false: not done, the disk is full: nothing was written'],
    ['cluster_deleted', 507, 'the ManagedCluster is deleted: not done, the disk is full: nothing was written'],
    ['cluster_denied', 200, 'hubAcceptsClient is set to false'],
  ])
})

it('is written before a decision at the embedded API is answered; members do not wait for theirs', async () => {
  const { entries, observer, isWaiting, written } = anObserver()
  await observer.wrote(aWrite('system:open-cluster-management:east:a1', cluster(false)))
  expect([entries.map(({ kind }) => kind), isWaiting()]).toEqual([['member'], false])
  let isTold = false
  const told = observer.wrote(aWrite()).then(() => {
    isTold = true
  })
  expect([entries.map(({ kind }) => kind), isWaiting()]).toEqual([['member', 'administration'], true])
  await new Promise(setImmediate)
  expect(isTold).toBe(false)
  written()
  await told
})
