import { describe, expect, it } from 'vitest'
import { configMap, freshNamespace, type Subject, type WatchedEvent } from './subject.ts'

const brief = (event: WatchedEvent) => `${event.type} ${event.object.metadata?.name}`

export function watchBehaviour(subject: () => Subject): void {
  const ask: Subject['ask'] = (...args) => subject().ask(...args)
  const place = async () => `/api/v1/namespaces/${await freshNamespace(subject())}/configmaps`
  const versionOf = async (at: string): Promise<string> => (await ask('GET', at)).body.metadata.resourceVersion

  describe('watching', () => {
    it('tells every change after a version, in order, each with its own version', async () => {
      const at = await place()
      const resourceVersion = await versionOf(at)
      await ask('POST', at, { body: configMap('a', { x: '1' }) })
      await using watch = await subject().watch(at, { resourceVersion, labelSelector: '!none' })
      await ask('PATCH', `${at}/a`, { body: { data: { x: '2' } }, type: 'application/merge-patch+json' })
      await ask('DELETE', `${at}/a`)
      await ask('POST', at, { body: configMap('b') })
      const events = await watch.take(4)
      expect(events.map(brief)).toEqual(['ADDED a', 'MODIFIED a', 'DELETED a', 'ADDED b'])
      expect(events[0]?.object).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1' })
      const versions = events.map(({ object }) => Number(object.metadata.resourceVersion))
      expect(versions).toEqual([...versions].sort((a, b) => a - b))
      expect(new Set(versions).size).toBe(4)
      expect(events[2]?.object.data).toEqual({ x: '2' })
    })

    it('resumes after any version without loss or repetition', async () => {
      const at = await place()
      const from = await versionOf(at)
      for (const name of ['a', 'b', 'c']) await ask('POST', at, { body: configMap(name) })
      await using first = await subject().watch(at, { resourceVersion: from })
      const [seen] = await first.take(1)
      await using second = await subject().watch(at, { resourceVersion: seen?.object.metadata.resourceVersion })
      expect((await second.take(2)).map(brief)).toEqual(['ADDED b', 'ADDED c'])
    })

    it('starts with what is there, when asked from nowhere', async () => {
      const at = await place()
      for (const name of ['a', 'b']) await ask('POST', at, { body: configMap(name, {}, { suite: 'yes' }) })
      await using watch = await subject().watch(at, { labelSelector: 'suite' })
      expect((await watch.take(2)).map(brief).sort()).toEqual(['ADDED a', 'ADDED b'])
      await ask('POST', at, { body: configMap('c', {}, { suite: 'yes' }) })
      expect((await watch.take(1)).map(brief)).toEqual(['ADDED c'])
    })

    it('shows an object that starts or stops matching as added or deleted', async () => {
      const at = await place()
      const resourceVersion = await versionOf(at)
      await using watch = await subject().watch(at, { resourceVersion, labelSelector: 'team=x' })
      const label = (team: string | null) =>
        ask('PATCH', `${at}/a`, { body: { metadata: { labels: { team } } }, type: 'application/merge-patch+json' })
      await ask('POST', at, { body: configMap('a', {}, { team: 'y' }) })
      await label('x')
      await label(null)
      await label('x')
      await ask('DELETE', `${at}/a`)
      expect((await watch.take(4)).map(({ type }) => type)).toEqual(['ADDED', 'DELETED', 'ADDED', 'DELETED'])
    })

    it('follows one object by its name, over all namespaces too', async () => {
      const at = await place()
      const resourceVersion = await versionOf(at)
      const [, namespace = ''] = /namespaces\/([^/]+)/.exec(at) ?? []
      const fieldSelector = `metadata.name=b,metadata.namespace=${namespace}`
      await using watch = await subject().watch('/api/v1/configmaps', { resourceVersion, fieldSelector })
      await ask('POST', at, { body: configMap('a') })
      await ask('POST', at, { body: configMap('b') })
      expect((await watch.take(1)).map(brief)).toEqual(['ADDED b'])
    })

    it('ends after the time asked for', async () => {
      const at = await place()
      await using watch = await subject().watch(at, { resourceVersion: await versionOf(at), timeoutSeconds: '1' })
      expect(watch.code).toBe(200)
      expect(await watch.next()).toBeUndefined()
    })

    it('sends a bookmark at the end for those who asked', async () => {
      const at = await place()
      // The real server reminds two seconds before the end, of what it saw of this resource since the watch began.
      const timeoutSeconds = subject().real ? '5' : '1'
      const query = { resourceVersion: await versionOf(at), timeoutSeconds, allowWatchBookmarks: 'true' }
      await using watch = await subject().watch(at, query)
      const { body: made } = await ask('POST', at, { body: configMap('a') })
      let last: WatchedEvent | undefined
      for (let event = await watch.next(); event; event = await watch.next()) last = event
      expect(last?.type).toBe('BOOKMARK')
      expect(last?.object).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1' })
      expect(Number(last?.object.metadata.resourceVersion)).toBeGreaterThanOrEqual(
        Number(made.metadata.resourceVersion),
      )
    })

    it('streams the initial list and marks its end', async () => {
      const at = await place()
      for (const name of ['a', 'b']) await ask('POST', at, { body: configMap(name, {}, { suite: 'yes' }) })
      const query = {
        labelSelector: 'suite',
        sendInitialEvents: 'true',
        resourceVersionMatch: 'NotOlderThan',
        allowWatchBookmarks: 'true',
      }
      await using watch = await subject().watch(at, query)
      const first = await watch.next()
      if (subject().real && first?.type === 'ERROR') {
        // An etcd before 3.4.25 cannot tell how far a watch is, and the server then refuses.
        expect(first.object.message).toContain('RequestWatchProgress')
        return
      }
      const events = [first, await watch.next(), await watch.next()]
      expect(events.map((event) => event?.type)).toEqual(['ADDED', 'ADDED', 'BOOKMARK'])
      expect(events[2]?.object.metadata.annotations).toEqual({ 'k8s.io/initial-events-end': 'true' })
      await ask('POST', at, { body: configMap('c', {}, { suite: 'yes' }) })
      expect((await watch.take(1)).map(brief)).toEqual(['ADDED c'])
    })

    it('refuses initial events without saying how old they may be', async () => {
      const answer = await ask('GET', '/api/v1/configmaps', { query: { watch: '1', sendInitialEvents: 'true' } })
      expect(answer.code).toBe(422)
    })

    it('shows a marked object as modified, and as deleted when its last finalizer goes', async () => {
      const at = await place()
      const resourceVersion = await versionOf(at)
      await using watch = await subject().watch(at, { resourceVersion })
      await ask('POST', at, { body: { metadata: { name: 'a', finalizers: ['suite.io/hold'] } } })
      await ask('DELETE', `${at}/a`)
      await ask('PATCH', `${at}/a`, { body: { metadata: { finalizers: [] } }, type: 'application/merge-patch+json' })
      const events = await watch.take(3)
      expect(events.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
      expect(events[1]?.object.metadata.deletionTimestamp).toBeDefined()
    })

    it('sends rows of a table to those who show them, columns once', async () => {
      const at = await place()
      for (const name of ['a', 'b']) await ask('POST', at, { body: configMap(name, { x: '1' }, { suite: 'yes' }) })
      const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
      await using watch = await subject().watch(at, { labelSelector: 'suite' }, accept)
      const [first, second] = await watch.take(2)
      expect(first?.object.kind).toBe('Table')
      const names = first?.object.columnDefinitions.map((column: { name: string }) => column.name)
      expect(names).toEqual(['Name', 'Data', 'Age'])
      expect(first?.object.rows[0].cells.slice(0, 2)).toEqual(['a', 1])
      expect(first?.object.rows[0].object.kind).toBe('PartialObjectMetadata')
      expect(second?.object.columnDefinitions ?? []).toEqual([])
    })
  })
}
