import { describe, expect, it } from 'vitest'
import { configMap, freshNamespace, namesOf, type Subject } from './subject.ts'

export function listBehaviour(subject: () => Subject): void {
  const ask: Subject['ask'] = (...args) => subject().ask(...args)
  // The root CA map is put into every namespace of a real cluster by a controller; the label keeps it out.
  const three = async (labels: Record<string, string>[] = [{ n: '1' }, { n: '2' }, { n: '3' }]) => {
    const at = `/api/v1/namespaces/${await freshNamespace(subject())}/configmaps`
    for (const [index, label] of labels.entries())
      await ask('POST', at, { body: configMap(`${'abcdefgh'[index]}`, {}, { suite: 'yes', ...label }) })
    return at
  }
  const mine = { labelSelector: 'suite' }

  describe('listing', () => {
    it('gives objects in the order of their names, with the version of the list', async () => {
      const at = await three()
      const list = await ask('GET', at, { query: mine })
      expect(list.body).toMatchObject({ kind: 'ConfigMapList', apiVersion: 'v1' })
      expect(list.body.metadata.resourceVersion).toMatch(/^\d+$/)
      expect(namesOf(list)).toEqual(['a', 'b', 'c'])
      expect(list.body.items[0].kind).toBeUndefined()
    })

    it('gives an empty list of a namespace that is not there', async () => {
      const list = await ask('GET', '/api/v1/namespaces/no-such-namespace/configmaps')
      expect(list.code).toBe(200)
      expect(list.body.items).toEqual([])
    })

    it.each([
      ['n=1', ['a']],
      ['n==1', ['a']],
      ['n!=1', ['b', 'c', 'd']],
      ['n in (1,3)', ['a', 'c']],
      ['n notin (1, 3)', ['b', 'd']],
      ['n', ['a', 'b', 'c']],
      ['!n', ['d']],
      ['n>1', ['b', 'c']],
      ['n<2', ['a']],
      ['n=1,suite=no', []],
      ['suite=yes , n in (2)', ['b']],
      ['n=', []],
    ])('selects by labels: %s', async (selector, expected) => {
      const at = await three([{ n: '1' }, { n: '2' }, { n: '3' }, {}])
      expect(namesOf(await ask('GET', at, { query: { labelSelector: `suite,${selector}` } }))).toEqual(expected)
    })

    it.each(['a==b==c', 'a in b', '=x', 'a in (', 'a b'])('refuses the label selector %j', async (labelSelector) => {
      const answer = await ask('GET', '/api/v1/configmaps', { query: { labelSelector } })
      expect(answer.code).toBe(400)
      expect(answer.body.reason).toBe('BadRequest')
    })

    it('selects by the fields that are known, and refuses others', async () => {
      const at = await three()
      expect(namesOf(await ask('GET', at, { query: { fieldSelector: 'metadata.name=b' } }))).toEqual(['b'])
      expect(namesOf(await ask('GET', at, { query: { ...mine, fieldSelector: 'metadata.name!=b' } }))).toEqual([
        'a',
        'c',
      ])
      const [, namespace = ''] = /namespaces\/([^/]+)/.exec(at) ?? []
      const everywhere = { ...mine, fieldSelector: `metadata.namespace=${namespace},metadata.name=a` }
      expect(namesOf(await ask('GET', '/api/v1/configmaps', { query: everywhere }))).toEqual(['a'])
      const unknown = await ask('GET', at, { query: { fieldSelector: 'data.x=1' } })
      expect(unknown.code).toBe(400)
      expect(unknown.body.message).toContain(
        '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
      )
      const ofPods = await ask('GET', '/api/v1/pods', { query: { fieldSelector: 'spec.x=1' } })
      expect(ofPods.code).toBe(400)
      expect(ofPods.body.message).toBe('field label not supported: spec.x')
    })

    it('selects pods by node and phase, secrets by type, events by what they concern', async () => {
      const namespace = await freshNamespace(subject())
      const pods = `/api/v1/namespaces/${namespace}/pods`
      const spec = { containers: [{ name: 'c', image: 'i' }] }
      await ask('POST', pods, { body: { metadata: { name: 'bound' }, spec: { ...spec, nodeName: 'n1' } } })
      await ask('POST', pods, { body: { metadata: { name: 'free' }, spec } })
      expect(namesOf(await ask('GET', pods, { query: { fieldSelector: 'spec.nodeName=n1' } }))).toEqual(['bound'])
      expect(namesOf(await ask('GET', pods, { query: { fieldSelector: 'spec.nodeName!=' } }))).toEqual(['bound'])
      expect(
        namesOf(await ask('GET', pods, { query: { fieldSelector: 'status.phase=Pending,spec.nodeName=' } })),
      ).toEqual(['free'])

      const secrets = `/api/v1/namespaces/${namespace}/secrets`
      await ask('POST', secrets, { body: { metadata: { name: 's' }, type: 'suite.io/x' } })
      expect(namesOf(await ask('GET', secrets, { query: { fieldSelector: 'type=suite.io/x' } }))).toEqual(['s'])

      const events = `/api/v1/namespaces/${namespace}/events`
      const event = (name: string, about: string) => ({
        metadata: { name },
        involvedObject: { kind: 'Pod', name: about, namespace },
        reason: 'Tested',
        type: 'Normal',
        message: 'for the suite',
        firstTimestamp: '2026-01-01T00:00:00Z',
        lastTimestamp: '2026-01-01T00:00:00Z',
      })
      for (const [name, about] of [
        ['e1', 'bound'],
        ['e2', 'free'],
      ] as const) {
        const made = await ask('POST', events, { body: event(name, about) })
        expect(made.code, JSON.stringify(made.body)).toBe(201)
      }
      const query = { fieldSelector: 'involvedObject.name=bound,involvedObject.kind=Pod' }
      expect(namesOf(await ask('GET', events, { query }))).toEqual(['e1'])
      expect(namesOf(await ask('GET', events, { query: { fieldSelector: 'reason=Tested,type!=Warning' } }))).toEqual([
        'e1',
        'e2',
      ])
    })

    it('shows events under both of their groups', async () => {
      const namespace = await freshNamespace(subject())
      await ask('POST', `/api/v1/namespaces/${namespace}/events`, {
        body: {
          metadata: { name: 'e' },
          involvedObject: { kind: 'Pod', name: 'p', namespace },
          reason: 'Tested',
          type: 'Normal',
          message: 'for the suite',
          count: 3,
          source: { component: 'suite' },
        },
      })
      const { body } = await ask('GET', `/apis/events.k8s.io/v1/namespaces/${namespace}/events/e`)
      expect(body).toMatchObject({
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        regarding: { kind: 'Pod', name: 'p' },
        note: 'for the suite',
        deprecatedCount: 3,
        deprecatedSource: { component: 'suite' },
      })
    })
  })

  describe('paging', () => {
    it('cuts a list into pages of one version', async () => {
      const at = await three()
      const names: string[] = []
      let token: string | undefined
      let version: string | undefined
      do {
        const page = await ask('GET', at, { query: { ...mine, limit: '2', ...(token ? { continue: token } : {}) } })
        expect(page.code).toBe(200)
        names.push(...namesOf(page))
        version ??= page.body.metadata.resourceVersion
        expect(page.body.metadata.resourceVersion).toBe(version)
        // Created and deleted while somebody pages: neither may show up nor be missed.
        if (!token) {
          await ask('POST', at, { body: configMap('bb', {}, { suite: 'yes' }) })
          await ask('DELETE', `${at}/c`)
        }
        token = page.body.metadata.continue
      } while (token)
      expect(names).toEqual(['a', 'b', 'c'])
    })

    it('says how many are left, where no selector hides them', async () => {
      const namespace = await freshNamespace(subject())
      const at = `/api/v1/namespaces/${namespace}/secrets`
      for (const name of ['a', 'b', 'c']) await ask('POST', at, { body: { metadata: { name } } })
      const page = await ask('GET', at, { query: { limit: '1' } })
      expect(page.body.metadata.remainingItemCount).toBe(2)
      const last = await ask('GET', at, { query: { limit: '5', continue: page.body.metadata.continue } })
      expect(namesOf(last)).toEqual(['b', 'c'])
      expect(last.body.metadata.continue).toBeUndefined()
      expect(last.body.metadata.remainingItemCount).toBeUndefined()
    })

    it('refuses tokens and limits that are none', async () => {
      expect((await ask('GET', '/api/v1/configmaps', { query: { continue: 'x' } })).code).toBe(400)
      expect((await ask('GET', '/api/v1/configmaps', { query: { limit: 'x' } })).code).toBe(400)
    })
  })

  describe('versions of lists', () => {
    it('gives the list as it was, when asked exactly', async () => {
      const at = await three()
      const { body: then } = await ask('GET', at, { query: mine })
      await ask('DELETE', `${at}/a`)
      await ask('PATCH', `${at}/b`, { body: { data: { x: 'new' } }, type: 'application/merge-patch+json' })
      const query = { ...mine, resourceVersion: then.metadata.resourceVersion, resourceVersionMatch: 'Exact' }
      const exact = await ask('GET', at, { query })
      expect(namesOf(exact)).toEqual(['a', 'b', 'c'])
      expect(exact.body.items[1].data ?? {}).toEqual({})
      expect(exact.body.metadata.resourceVersion).toBe(then.metadata.resourceVersion)
      const notOlder = await ask('GET', at, { query: { ...query, resourceVersionMatch: 'NotOlderThan' } })
      expect(namesOf(notOlder)).toEqual(['b', 'c'])
    })

    it('says that a version of the future is too large', async () => {
      const answer = await ask('GET', '/api/v1/configmaps', { query: { resourceVersion: '99999999' } })
      expect(answer.code).toBe(504)
      expect(answer.body.details.causes).toEqual([
        { reason: 'ResourceVersionTooLarge', message: 'Too large resource version' },
      ])
    })

    it('refuses a match without a version', async () => {
      const answer = await ask('GET', '/api/v1/configmaps', { query: { resourceVersionMatch: 'Exact' } })
      expect(answer.code).toBe(422)
    })
  })
}
