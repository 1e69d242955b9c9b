import { afterEach, describe, expect, it } from 'vitest'
import type { KubeClient } from '#kube'
import { ROWS_ERRORS_KEPT, type RowsPart, systemClock } from '#model'
import { status } from '../../../platform/kube/testing/scripted-server.ts'
import type { CompiledSource } from '../types.ts'
import { type CollectSourceOptions, collectSource } from './collect-source.ts'
import { aMember, aSource, type ScriptedMember, widgetsIn } from './testing/member.ts'

const members: ScriptedMember[] = []
afterEach(async () => {
  for (const member of members.splice(0)) await member[Symbol.asyncDispose]()
})

async function member(over: Partial<ScriptedMember> = {}): Promise<ScriptedMember> {
  const made = await aMember()
  members.push(made)
  return Object.assign(made, over)
}

/** No waiting between tries: chance says so. */
const read = ({ kube }: ScriptedMember, source: CompiledSource, over: Partial<CollectSourceOptions> = {}) =>
  collectSource({ kube, source, signal: new AbortController().signal, clock: systemClock, random: () => 0, ...over })

function whole(part: RowsPart): Extract<RowsPart, { outcome: 'complete' }> {
  if (part.outcome !== 'complete') throw new Error(`${part.outcome}: ${JSON.stringify(part)}`)
  return part
}

const idsOf = (part: RowsPart) => Array.from({ length: whole(part).rows.size }, (_, row) => whole(part).rows.idAt(row))
const fast = (source: CompiledSource, over: Partial<CompiledSource['collection']>): CompiledSource => ({
  ...source,
  collection: { ...source.collection, ...over },
})

const answering =
  (code: number, reason: string, isMeant: (url: URL) => boolean) =>
  ({ url }: { readonly url: URL }, response: Parameters<typeof status>[0]): boolean => {
    if (isMeant(url)) status(response, code, reason)
    return isMeant(url)
  }

describe('a collection', () => {
  it('pages through one list over all namespaces, and sums what it saw', async () => {
    const cluster = await member({ widgets: widgetsIn(25, 'a', 'b') })
    const part = whole(await read(cluster, aSource({ collection: { batchSize: 10 } })))
    expect(part.rows.size).toBe(25)
    expect(part).toMatchObject({ aggregations: { total: 300 }, truncated: false, errors: [], errorCount: 0 })
    expect(cluster.lists()).toEqual([
      '/apis/example.com/v1/widgets?limit=10',
      '/apis/example.com/v1/widgets?limit=10&continue=10',
      '/apis/example.com/v1/widgets?limit=10&continue=20',
    ])
  })

  it('asks for the objects with the wanted labels only', async () => {
    const cluster = await member({ widgets: widgetsIn(1, 'a') })
    await read(cluster, aSource({ source: { labelSelector: { matchLabels: { app: 'x' } } } }))
    expect(cluster.lists()[0]).toContain('labelSelector=app%3Dx')
  })

  it.each([
    [9, false, 9],
    [10, false, 10],
    [11, true, 10],
    [25, true, 10],
  ])('of %i objects with a limit of 10 is truncated: %s', async (count, truncated, rows) => {
    const cluster = await member({ widgets: widgetsIn(count, 'a') })
    const part = whole(await read(cluster, aSource({ collection: { maxResources: 10, batchSize: 10 } })))
    expect([part.truncated, part.rows.size]).toEqual([truncated, rows])
  })

  it('is cut to what a preview asks for, and reads no more than that', async () => {
    const cluster = await member({ widgets: widgetsIn(1000, 'a') })
    const part = whole(await read(cluster, aSource(), { limit: 5 }))
    expect([part.truncated, part.rows.size]).toEqual([true, 5])
    expect(cluster.lists()).toEqual(['/apis/example.com/v1/widgets?limit=6'])
  })

  it('leaves namespaces out while it pages: they do not count for the limit', async () => {
    const cluster = await member({ widgets: widgetsIn(40, 'kube-system', 'team-a') })
    const source = aSource({
      source: { namespaces: { include: ['team-*'] } },
      collection: { maxResources: 20, batchSize: 10 },
    })
    const part = whole(await read(cluster, source))
    expect([part.truncated, part.rows.size]).toEqual([false, 20])
    expect(idsOf(part).every((id) => id.startsWith('team-a/'))).toBe(true)
    expect(cluster.server.requests.some((line) => line.includes('/api/v1/namespaces'))).toBe(false)
  })

  it('asks namespaces that are named directly, and takes one that is not there for empty', async () => {
    const cluster = await member({ widgets: widgetsIn(6, 'a', 'b', 'c') })
    const part = await read(cluster, aSource({ source: { namespaces: { include: ['a', 'c', 'gone'] } } }))
    expect(idsOf(part)).toEqual(['a/w0', 'a/w3', 'c/w2', 'c/w5'])
    expect(cluster.lists().map((line) => line.split('?')[0])).toEqual([
      '/apis/example.com/v1/namespaces/a/widgets',
      '/apis/example.com/v1/namespaces/c/widgets',
      '/apis/example.com/v1/namespaces/gone/widgets',
    ])
  })

  it.each([
    [4, false],
    [3, true],
  ])('shares a limit of %i between namespaces that hold 4, and is truncated: %s', async (limit, truncated) => {
    const cluster = await member({ widgets: widgetsIn(4, 'a', 'b') })
    const source = aSource({
      source: { namespaces: { include: ['a', 'b', 'c'] } },
      collection: { maxResources: limit, parallelism: 1 },
    })
    const part = whole(await read(cluster, source))
    expect([part.truncated, part.rows.size]).toEqual([truncated, limit])
  })

  it('lists no more namespaces at once than it may', async () => {
    let [running, most] = [0, 0]
    const names = Array.from({ length: 12 }, (_, i) => `n${i}`)
    const kube = {
      find: async () => ({ plural: 'widgets', namespaced: true }),
      async *list() {
        most = Math.max(most, ++running)
        await new Promise((resolve) => setImmediate(resolve))
        running--
        yield { items: [], resourceVersion: '1', next: '' }
      },
    } as unknown as KubeClient // no more of it is asked
    const source = aSource({ source: { namespaces: { include: names } }, collection: { parallelism: 3 } })
    await collectSource({ kube, source, signal: new AbortController().signal, clock: systemClock })
    expect(most).toBe(3)
  })
})

describe('what the cluster says of a kind counts more than the declaration', () => {
  it('where it calls it otherwise than anybody would guess', async () => {
    const cluster = await member({ widgets: widgetsIn(2, 'a'), plural: 'widgetten' })
    expect(idsOf(await read(cluster, aSource()))).toHaveLength(2)
  })

  it('where objects that are declared to be in namespaces are of the cluster', async () => {
    const cluster = await member({ widgets: [{ name: 'w1' }], namespaced: false })
    expect(idsOf(await read(cluster, aSource({ source: { namespaces: { include: ['a'] } } })))).toEqual(['w1'])
  })

  it('where objects that are declared to be of the cluster are in namespaces', async () => {
    const cluster = await member({ widgets: widgetsIn(2, 'a', 'b') })
    expect(idsOf(await read(cluster, aSource({ source: { scope: 'Cluster' } })))).toEqual(['a/w0', 'b/w1'])
  })

  it('unless it does not let us ask: then the declaration is tried', async () => {
    const cluster = await member({
      widgets: widgetsIn(2, 'a'),
      meddle: answering(403, 'Forbidden', (url) => url.pathname === '/apis/example.com/v1'),
    })
    expect(idsOf(await read(cluster, aSource()))).toHaveLength(2)
  })

  it('and a kind it does not serve is absent, which is no failure of the cluster', async () => {
    const cluster = await member({ plural: undefined })
    expect(await read(cluster, aSource())).toMatchObject({
      outcome: 'absent',
      code: 'not_served',
      message: 'the cluster does not serve Widget of example.com/v1',
    })
    expect(cluster.lists()).toEqual([])
  })
})

describe('a kind that changes while it is read', () => {
  it('is absent when it vanishes between two pages', async () => {
    const cluster = await member({ widgets: widgetsIn(30, 'a') })
    cluster.meddle = ({ url }) => {
      if (url.searchParams.has('continue')) cluster.plural = undefined
      return false
    }
    const part = await read(cluster, aSource({ collection: { batchSize: 10 } }))
    expect(part).toMatchObject({ outcome: 'absent', code: 'not_served' })
  })

  it('is read under its new name when it comes back under another', async () => {
    const cluster = await member({ widgets: widgetsIn(2, 'a') })
    expect(idsOf(await read(cluster, aSource()))).toHaveLength(2)
    // Discovery is kept for minutes: the list itself must show that it is old.
    cluster.plural = 'gadgets'
    expect(idsOf(await read(cluster, aSource()))).toHaveLength(2)
  })

  it('is read again from the start when the version of its list is gone, a few times', async () => {
    const cluster = await member({ widgets: widgetsIn(30, 'a') })
    let expired = 0
    cluster.meddle = ({ url }, response) => {
      if (url.searchParams.get('continue') !== '20' || expired++ > 0) return false
      cluster.widgets = widgetsIn(25, 'a')
      status(response, 410, 'Expired')
      return true
    }
    const part = whole(await read(cluster, aSource({ collection: { batchSize: 10 } })))
    expect(part.rows.size).toBe(25)
    cluster.meddle = answering(410, 'Expired', (url) => url.searchParams.has('continue'))
    expect(await read(cluster, aSource({ collection: { batchSize: 10 } }))).toMatchObject({
      outcome: 'unreachable',
      code: 'kube_expired',
    })
  })
})

/** Refuses, or fails, lists of these namespaces; '' is the list over all. */
const refusing = (code: number, reason: string, ...namespaces: readonly string[]) =>
  answering(code, reason, ({ pathname }) => {
    const namespace = /namespaces\/([^/]+)\//.exec(pathname)?.[1] ?? ''
    return pathname.endsWith('/widgets') && namespaces.includes(namespace)
  })

describe('what may not be read', () => {
  it('is named by namespace, and the rest is kept', async () => {
    const cluster = await member({ widgets: widgetsIn(6, 'a', 'b', 'c'), meddle: refusing(403, 'Forbidden', 'b') })
    const part = whole(await read(cluster, aSource({ source: { namespaces: { include: ['a', 'b', 'c'] } } })))
    expect(idsOf(part)).toEqual(['a/w0', 'a/w3', 'c/w2', 'c/w5'])
    expect(part.errorCount).toBe(1)
    expect(part.errors).toEqual([
      expect.objectContaining({ namespace: 'b', outcome: 'forbidden', code: 'kube_forbidden' }),
    ])
    expect(part.aggregations).toEqual({ total: 10 })
  })

  it('over all namespaces is read where it may be', async () => {
    const cluster = await member({
      widgets: widgetsIn(6, 'a', 'b', 'c'),
      namespaces: ['empty'],
      meddle: refusing(403, 'Forbidden', '', 'b'),
    })
    const part = whole(await read(cluster, aSource({ source: { namespaces: { exclude: ['c'] } } })))
    expect(idsOf(part)).toEqual(['a/w0', 'a/w3'])
    expect(part.errors.map(({ namespace }) => namespace)).toEqual(['b'])
  })

  it('anywhere is forbidden as a whole', async () => {
    const cluster = await member({ widgets: widgetsIn(2, 'a', 'b'), meddle: refusing(403, 'Forbidden', '', 'a', 'b') })
    expect(await read(cluster, aSource())).toMatchObject({ outcome: 'forbidden', code: 'kube_forbidden' })
    const exact = aSource({ source: { namespaces: { include: ['a', 'b'] } } })
    expect(await read(cluster, exact)).toMatchObject({ outcome: 'forbidden', code: 'kube_forbidden' })
  })

  it('in very many namespaces is counted, and the first are named', async () => {
    const names = Array.from({ length: 30 }, (_, i) => `n${String(i).padStart(2, '0')}`)
    const cluster = await member({
      widgets: widgetsIn(30, ...names),
      meddle: refusing(403, 'Forbidden', ...names.slice(1)),
    })
    const part = whole(await read(cluster, aSource({ source: { namespaces: { include: names } } })))
    expect(part.errorCount).toBe(29)
    expect(part.errors.map(({ namespace }) => namespace)).toEqual(names.slice(1, 1 + ROWS_ERRORS_KEPT))
  })

  it('gives its rows back to the limit of the others', async () => {
    const cluster = await member({ widgets: [...widgetsIn(20, 'a'), ...widgetsIn(8, 'b')] })
    cluster.meddle = answering(
      403,
      'Forbidden',
      (url) => url.pathname.includes('/a/') && url.searchParams.has('continue'),
    )
    const source = fast(aSource({ source: { namespaces: { include: ['a', 'b'] } } }), {
      maxResources: 11,
      batchSize: 10,
      parallelism: 1,
    })
    const part = whole(await read(cluster, source))
    expect([part.rows.size, part.truncated, part.errorCount]).toEqual([8, false, 1])
  })
})

describe('trouble that passes', () => {
  it.each([
    [429, 'TooManyRequests'],
    [500, 'InternalError'],
    [503, 'ServiceUnavailable'],
  ])('such as %i on a page is waited for, and the page is asked for again', async (code, reason) => {
    let failures = 0
    const cluster = await member({ widgets: widgetsIn(25, 'a') })
    cluster.meddle = ({ url }, response) => {
      if (url.searchParams.get('continue') !== '10' || failures++ > 1) return false
      status(response, code, reason)
      return true
    }
    const part = await read(cluster, aSource({ collection: { batchSize: 10, retryAttempts: 3 } }))
    expect(whole(part).rows.size).toBe(25)
    expect(cluster.lists().filter((line) => !line.includes('continue'))).toHaveLength(1)
  })

  it('is given up after as many tries as the source allows', async () => {
    const cluster = await member({ widgets: widgetsIn(1, 'a'), meddle: refusing(500, 'InternalError', '') })
    const part = await read(cluster, aSource({ collection: { retryAttempts: 2 } }))
    expect(part).toMatchObject({ outcome: 'unreachable', code: 'kube_server' })
    expect(cluster.lists()).toHaveLength(3)
  })

  it('of one API does not keep the hub from the rest of the cluster', async () => {
    const cluster = await member({ widgets: widgetsIn(1, 'a'), meddle: refusing(503, 'ServiceUnavailable', '') })
    for (let i = 0; i < 4; i++) await read(cluster, aSource({ collection: { retryAttempts: 3 } }))
    cluster.meddle = () => false
    await expect(cluster.kube.ping()).resolves.toBeUndefined()
  })

  it('is not waited for beyond the time a collection has', async () => {
    const cluster = await member({ widgets: widgetsIn(1, 'a'), meddle: ({ url }) => url.pathname.endsWith('/widgets') })
    const part = await read(cluster, fast(aSource(), { timeoutMs: 50, retryAttempts: 5 }))
    expect(part).toMatchObject({ outcome: 'unreachable', code: 'collection_timeout' })
    if ('message' in part) expect(part.message).toContain('not finished within 0.05 s, after 0 rows')
  })

  it('of some namespaces leaves what the others gave when the time is over', async () => {
    const cluster = await member({
      widgets: widgetsIn(4, 'a', 'b'),
      meddle: ({ url }) => url.pathname.includes('/b/'),
    })
    const source = fast(aSource({ source: { namespaces: { include: ['a', 'b'] } } }), { timeoutMs: 1_500 })
    const part = whole(await read(cluster, source))
    expect(idsOf(part)).toEqual(['a/w0', 'a/w2'])
    expect(part.errors).toEqual([expect.objectContaining({ namespace: 'b', code: 'collection_timeout' })])
  })
})

it('says nothing when whoever asked for it ends it', async () => {
  const end = new AbortController()
  const cluster = await member({
    widgets: widgetsIn(1, 'a'),
    meddle: ({ url }) => {
      if (url.pathname.endsWith('/widgets')) end.abort(new Error('not wanted any more'))
      return url.pathname.endsWith('/widgets')
    },
  })
  const options = { kube: cluster.kube, source: aSource(), signal: end.signal, clock: systemClock }
  await expect(collectSource(options)).rejects.toThrow('not wanted any more')
})
