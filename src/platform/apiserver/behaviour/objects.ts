import { describe, expect, it } from 'vitest'
import { configMap, freshNamespace, namesOf, type Subject, uniqueName } from './subject.ts'

export function objectBehaviour(subject: () => Subject): void {
  const ask: Subject['ask'] = (...args) => subject().ask(...args)
  const place = async () => `/api/v1/namespaces/${await freshNamespace(subject())}/configmaps`

  describe('creating', () => {
    it('gives a new object its identity and a version', async () => {
      const at = await place()
      const created = await ask('POST', at, { body: configMap('a', { x: '1' }) })
      expect(created.code).toBe(201)
      expect(created.body).toMatchObject({ kind: 'ConfigMap', apiVersion: 'v1', data: { x: '1' } })
      const { metadata } = created.body
      expect(metadata.uid).toMatch(/^[0-9a-f-]{36}$/)
      expect(metadata.resourceVersion).toMatch(/^\d+$/)
      expect(metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
      expect(metadata.generation).toBeUndefined()
      expect((await ask('GET', `${at}/a`)).body).toEqual(created.body)
    })

    it('refuses a name that is taken', async () => {
      const at = await place()
      await ask('POST', at, { body: configMap('a') })
      const again = await ask('POST', at, { body: configMap('a') })
      expect(again.code).toBe(409)
      expect(again.body).toMatchObject({
        kind: 'Status',
        apiVersion: 'v1',
        status: 'Failure',
        message: 'configmaps "a" already exists',
        reason: 'AlreadyExists',
        details: { name: 'a', kind: 'configmaps' },
        code: 409,
      })
    })

    it('makes a name from generateName', async () => {
      const at = await place()
      const { body, code } = await ask('POST', at, { body: { metadata: { generateName: 'made-' } } })
      expect(code).toBe(201)
      expect(body.metadata.name).toMatch(/^made-[bcdfghjklmnpqrstvwxz2-9]{5}$/)
      expect(body.metadata.generateName).toBe('made-')
    })

    it.each([
      ['an upper case name', { metadata: { name: 'Bad' } }, 'metadata.name', 'FieldValueInvalid'],
      ['no name', { metadata: {} }, 'metadata.name', 'FieldValueRequired'],
      ['a bad label value', { metadata: { name: 'a', labels: { a: '-x-' } } }, 'metadata.labels', 'FieldValueInvalid'],
      [
        'a bad annotation key',
        { metadata: { name: 'a', annotations: { 'a b': '' } } },
        'metadata.annotations',
        'FieldValueInvalid',
      ],
    ])('refuses %s and names the field', async (_, body, field, reason) => {
      const answer = await ask('POST', await place(), { body })
      expect(answer.code).toBe(422)
      expect(answer.body).toMatchObject({
        reason: 'Invalid',
        details: { kind: 'ConfigMap', causes: [{ field, reason }] },
      })
    })

    it('wants the namespace to exist and to be the one of the path', async () => {
      const missing = await ask('POST', '/api/v1/namespaces/no-such-namespace/configmaps', { body: configMap('a') })
      expect(missing.code).toBe(404)
      expect(missing.body).toMatchObject({
        message: 'namespaces "no-such-namespace" not found',
        details: { kind: 'namespaces' },
      })
      const other = { ...configMap('a'), metadata: { name: 'a', namespace: 'other' } }
      const mismatch = await ask('POST', await place(), { body: other })
      expect(mismatch.code).toBe(400)
      expect(mismatch.body.message).toBe(
        'the namespace of the provided object does not match the namespace sent on the request',
      )
    })

    it('refuses a body of another kind, of no known type, and one that is no JSON', async () => {
      const at = await place()
      expect((await ask('POST', at, { body: { kind: 'Pod', apiVersion: 'v1', metadata: { name: 'a' } } })).code).toBe(
        400,
      )
      expect((await ask('POST', at, { body: '{', type: 'application/json' })).code).toBe(400)
      const text = await ask('POST', at, { body: 'a', type: 'text/plain' })
      expect(text.code).toBe(415)
      expect(text.body.reason).toBe('UnsupportedMediaType')
    })

    it('takes YAML', async () => {
      const at = await place()
      const body = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  x: "1"\n'
      const created = await ask('POST', at, { body, type: 'application/yaml' })
      expect(created.code).toBe(201)
      expect(created.body.data).toEqual({ x: '1' })
    })

    it('stores nothing on a dry run, but answers as if', async () => {
      const at = await place()
      const dry = await ask('POST', at, { body: configMap('a', { x: '1' }), query: { dryRun: 'All' } })
      expect(dry.code).toBe(201)
      expect(dry.body.metadata.uid).toBeDefined()
      expect((await ask('GET', `${at}/a`)).code).toBe(404)
    })

    it('says which fields it does not know, as strictly as asked', async () => {
      const at = await place()
      const body = { ...configMap('a'), nope: 1 }
      const strict = await ask('POST', at, { body, query: { fieldValidation: 'Strict' } })
      expect(strict.code).toBe(400)
      expect(strict.body.message).toContain('strict decoding error: unknown field "nope"')
      const warned = await ask('POST', at, { body, query: { fieldValidation: 'Warn' } })
      expect(warned.code).toBe(201)
      expect(warned.warnings.join()).toContain('unknown field \\"nope\\"')
      expect(warned.body.nope).toBeUndefined()
    })

    it('encodes stringData of a secret and defaults its type', async () => {
      const namespace = await freshNamespace(subject())
      const { body } = await ask('POST', `/api/v1/namespaces/${namespace}/secrets`, {
        body: { metadata: { name: 's' }, stringData: { token: 'geheim' }, data: { other: 'eA==' } },
      })
      expect(body).toMatchObject({ type: 'Opaque', data: { token: 'Z2VoZWlt', other: 'eA==' } })
      expect(body.stringData).toBeUndefined()
    })

    it('refuses a body beyond all measure', async () => {
      const at = await place()
      const answer = await ask('POST', at, { body: configMap('a', { x: 'x'.repeat(3.1 * 1024 * 1024) }) })
      expect(answer.code).toBe(413)
      expect(answer.body.reason).toBe('RequestEntityTooLarge')
    })
  })

  describe('reading', () => {
    it('says what is not there', async () => {
      const at = await place()
      expect((await ask('GET', `${at}/none`)).body).toMatchObject({
        code: 404,
        reason: 'NotFound',
        message: 'configmaps "none" not found',
        details: { name: 'none', kind: 'configmaps' },
      })
      expect((await ask('GET', '/api/v1/gadgets')).body).toMatchObject({
        code: 404,
        message: 'the server could not find the requested resource',
      })
      expect((await ask('GET', '/apis/no.such.group/v1/things')).code).toBe(404)
    })

    it('does not allow what makes no sense', async () => {
      expect((await ask('POST', '/api/v1/configmaps', { body: configMap('a') })).code).toBe(405)
      expect((await ask('DELETE', '/api/v1/namespaces')).code).toBe(405)
    })
  })

  describe('replacing', () => {
    it('changes the object and its version, and nothing where nothing differs', async () => {
      const at = await place()
      const { body: first } = await ask('POST', at, { body: configMap('a', { x: '1' }) })
      const second = await ask('PUT', `${at}/a`, { body: { ...first, data: { x: '2' } } })
      expect(second.code).toBe(200)
      expect(second.body.data).toEqual({ x: '2' })
      expect(Number(second.body.metadata.resourceVersion)).toBeGreaterThan(Number(first.metadata.resourceVersion))
      expect(second.body.metadata.uid).toBe(first.metadata.uid)
      const same = await ask('PUT', `${at}/a`, { body: second.body })
      expect(same.body.metadata.resourceVersion).toBe(second.body.metadata.resourceVersion)
    })

    it('refuses to overwrite what was changed meanwhile', async () => {
      const at = await place()
      const { body: first } = await ask('POST', at, { body: configMap('a', { x: '1' }) })
      await ask('PUT', `${at}/a`, { body: { ...first, data: { x: '2' } } })
      const late = await ask('PUT', `${at}/a`, { body: { ...first, data: { x: '3' } } })
      expect(late.code).toBe(409)
      expect(late.body).toMatchObject({
        reason: 'Conflict',
        message:
          'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again',
        details: { name: 'a', kind: 'configmaps' },
      })
    })

    it('takes an update without a version, keeps what belongs to the server', async () => {
      const at = await place()
      const { body: first } = await ask('POST', at, { body: configMap('a', { x: '1' }) })
      const { body } = await ask('PUT', `${at}/a`, {
        body: { metadata: { name: 'a', creationTimestamp: '2001-01-01T00:00:00Z' }, data: { y: '1' } },
      })
      expect(body.data).toEqual({ y: '1' })
      expect(body.metadata.creationTimestamp).toBe(first.metadata.creationTimestamp)
      expect(body.metadata.uid).toBe(first.metadata.uid)
    })

    it('refuses another uid, another name, and what is not there', async () => {
      const at = await place()
      const { body: first } = await ask('POST', at, { body: configMap('a') })
      const uid = { ...first, metadata: { ...first.metadata, uid: '11111111-1111-1111-1111-111111111111' } }
      expect((await ask('PUT', `${at}/a`, { body: uid })).code).toBe(409)
      const name = await ask('PUT', `${at}/a`, { body: configMap('b') })
      expect(name.code).toBe(400)
      expect(name.body.message).toBe('the name of the object (b) does not match the name on the URL (a)')
      expect((await ask('PUT', `${at}/none`, { body: configMap('none') })).code).toBe(404)
    })

    it('keeps status and specification apart, and counts generations of the specification', async () => {
      const namespace = await freshNamespace(subject())
      const at = `/apis/apps/v1/namespaces/${namespace}/deployments`
      const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
      const { body: first } = await ask('POST', at, {
        body: { metadata: { name: 'd' }, spec: { replicas: 1, selector: { matchLabels: { app: 'a' } }, template } },
      })
      expect(first.metadata.generation).toBe(1)
      const status = await ask('PUT', `${at}/d/status`, {
        body: { ...first, spec: { ...first.spec, replicas: 9 }, status: { replicas: 1, readyReplicas: 1 } },
      })
      expect(status.code).toBe(200)
      expect(status.body.spec.replicas).toBe(1)
      expect(status.body.status.readyReplicas).toBe(1)
      expect(status.body.metadata.generation).toBe(1)
      const spec = await ask('PUT', `${at}/d`, {
        body: { ...status.body, spec: { ...first.spec, replicas: 2 }, status: { readyReplicas: 7 } },
      })
      expect(spec.body.spec.replicas).toBe(2)
      expect(spec.body.status.readyReplicas).toBe(1)
      expect(spec.body.metadata.generation).toBe(2)
      const labelled = await ask('PUT', `${at}/d`, {
        body: { ...spec.body, metadata: { ...spec.body.metadata, labels: { a: 'b' } } },
      })
      expect(labelled.body.metadata.generation).toBe(2)
    })

    it('scales through the scale subresource', async () => {
      const namespace = await freshNamespace(subject())
      const at = `/apis/apps/v1/namespaces/${namespace}/deployments`
      const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }] } }
      await ask('POST', at, {
        body: { metadata: { name: 'd' }, spec: { replicas: 1, selector: { matchLabels: { app: 'a' } }, template } },
      })
      const scaled = await ask('PATCH', `${at}/d/scale`, {
        body: { spec: { replicas: 4 } },
        type: 'application/merge-patch+json',
      })
      expect(scaled.body).toMatchObject({ kind: 'Scale', apiVersion: 'autoscaling/v1', spec: { replicas: 4 } })
      expect((await ask('GET', `${at}/d`)).body).toMatchObject({ spec: { replicas: 4 }, metadata: { generation: 2 } })
    })
  })

  describe('deleting', () => {
    it('answers with the uid of what went', async () => {
      const at = await place()
      const { body: first } = await ask('POST', at, { body: configMap('a') })
      const gone = await ask('DELETE', `${at}/a`)
      expect(gone.code).toBe(200)
      expect(gone.body).toMatchObject({
        kind: 'Status',
        status: 'Success',
        details: { name: 'a', kind: 'configmaps', uid: first.metadata.uid },
      })
      expect((await ask('DELETE', `${at}/a`)).code).toBe(404)
    })

    it('holds to preconditions', async () => {
      const at = await place()
      const { body: first } = await ask('POST', at, { body: configMap('a') })
      const uid = await ask('DELETE', `${at}/a`, { body: { preconditions: { uid: 'other' } } })
      expect(uid.code).toBe(409)
      expect(uid.body.message).toContain('the UID in the precondition (other) does not match the UID in record')
      const version = await ask('DELETE', `${at}/a`, { body: { preconditions: { resourceVersion: '1' } } })
      expect(version.code).toBe(409)
      const right = { uid: first.metadata.uid, resourceVersion: first.metadata.resourceVersion }
      expect((await ask('DELETE', `${at}/a`, { body: { preconditions: right } })).code).toBe(200)
    })

    it('waits for finalizers, then lets go', async () => {
      const at = await place()
      await ask('POST', at, { body: { ...configMap('a'), metadata: { name: 'a', finalizers: ['suite.io/hold'] } } })
      const marked = await ask('DELETE', `${at}/a`)
      expect(marked.code).toBe(200)
      expect(marked.body.metadata.deletionTimestamp).toBeDefined()
      expect(marked.body.metadata.deletionGracePeriodSeconds).toBe(0)
      const again = await ask('DELETE', `${at}/a`)
      expect(again.body.metadata.resourceVersion).toBe(marked.body.metadata.resourceVersion)
      const more = await ask('PATCH', `${at}/a`, {
        body: { metadata: { finalizers: ['suite.io/hold', 'suite.io/new'] } },
        type: 'application/merge-patch+json',
      })
      expect(more.code).toBe(422)
      const free = await ask('PATCH', `${at}/a`, {
        body: { metadata: { finalizers: null } },
        type: 'application/merge-patch+json',
      })
      expect(free.code).toBe(200)
      expect((await ask('GET', `${at}/a`)).code).toBe(404)
    })

    it('deletes nothing on a dry run', async () => {
      const at = await place()
      await ask('POST', at, { body: configMap('a') })
      expect((await ask('DELETE', `${at}/a`, { query: { dryRun: 'All' } })).code).toBe(200)
      expect((await ask('GET', `${at}/a`)).code).toBe(200)
    })

    it('deletes a collection by selector and answers with what went', async () => {
      const at = await place()
      await ask('POST', at, { body: configMap('a', {}, { team: 'x' }) })
      await ask('POST', at, { body: configMap('b', {}, { team: 'y' }) })
      const answer = await ask('DELETE', at, { query: { labelSelector: 'team=x' } })
      expect(answer.code).toBe(200)
      expect(namesOf(answer)).toEqual(['a'])
      const left = await ask('GET', at, { query: { fieldSelector: 'metadata.name!=kube-root-ca.crt' } })
      expect(namesOf(left)).toEqual(['b'])
    })

    it('keeps the namespaces every cluster needs', async () => {
      const answer = await ask('DELETE', '/api/v1/namespaces/default')
      expect(answer.code).toBe(403)
      expect(answer.body.message).toBe('namespaces "default" is forbidden: this namespace may not be deleted')
    })
  })

  describe('namespaces', () => {
    it('are made with a label, a finalizer and a phase', async () => {
      const name = uniqueName('ns')
      const { body } = await ask('POST', '/api/v1/namespaces', { body: { metadata: { name } } })
      expect(body).toMatchObject({
        metadata: { labels: { 'kubernetes.io/metadata.name': name } },
        spec: { finalizers: ['kubernetes'] },
        status: { phase: 'Active' },
      })
    })

    it('are there from the start', async () => {
      const names = namesOf(await ask('GET', '/api/v1/namespaces'))
      expect(names).toEqual(expect.arrayContaining(['default', 'kube-node-lease', 'kube-public', 'kube-system']))
    })

    it('are Terminating while they are deleted, and take nothing new', async () => {
      const name = await freshNamespace(subject())
      const at = `/api/v1/namespaces/${name}/configmaps`
      await ask('POST', at, { body: { ...configMap('a'), metadata: { name: 'a', finalizers: ['suite.io/hold'] } } })
      const marked = await ask('DELETE', `/api/v1/namespaces/${name}`)
      expect(marked.body).toMatchObject({ kind: 'Namespace', status: { phase: 'Terminating' } })
      const refused = await ask('POST', at, { body: configMap('b') })
      expect(refused.code).toBe(403)
      expect(refused.body).toMatchObject({
        reason: 'Forbidden',
        details: { causes: [{ reason: 'NamespaceTerminating', field: 'metadata.namespace' }] },
      })
    })
  })

  describe('patching', () => {
    const merge = 'application/merge-patch+json'
    const json = 'application/json-patch+json'
    const strategic = 'application/strategic-merge-patch+json'

    it('merges', async () => {
      const at = await place()
      await ask('POST', at, { body: configMap('a', { x: '1', y: '2' }) })
      const { body, code } = await ask('PATCH', `${at}/a`, { body: { data: { x: null, z: '3' } }, type: merge })
      expect(code).toBe(200)
      expect(body.data).toEqual({ y: '2', z: '3' })
    })

    it('applies JSON patch operations in order, or none', async () => {
      const at = await place()
      await ask('POST', at, { body: configMap('a', { x: '1' }) })
      const good = await ask('PATCH', `${at}/a`, {
        type: json,
        body: [
          { op: 'test', path: '/data/x', value: '1' },
          { op: 'replace', path: '/data/x', value: '2' },
          { op: 'add', path: '/metadata/labels', value: { a: 'b' } },
        ],
      })
      expect(good.body).toMatchObject({ data: { x: '2' }, metadata: { labels: { a: 'b' } } })
      const bad = await ask('PATCH', `${at}/a`, {
        type: json,
        body: [
          { op: 'replace', path: '/data/x', value: '3' },
          { op: 'test', path: '/data/x', value: 'other' },
        ],
      })
      expect(bad.code).toBe(422)
      expect((await ask('GET', `${at}/a`)).body.data).toEqual({ x: '2' })
    })

    it('merges lists of built-in kinds by their keys', async () => {
      const namespace = await freshNamespace(subject())
      const at = `/apis/apps/v1/namespaces/${namespace}/deployments`
      const template = {
        metadata: { labels: { app: 'a' } },
        spec: {
          containers: [
            { name: 'one', image: 'i:1' },
            { name: 'two', image: 'j:1' },
          ],
        },
      }
      await ask('POST', at, {
        body: { metadata: { name: 'd' }, spec: { selector: { matchLabels: { app: 'a' } }, template } },
      })
      const { body } = await ask('PATCH', `${at}/d`, {
        type: strategic,
        body: { spec: { template: { spec: { containers: [{ name: 'two', image: 'j:2' }] } } } },
      })
      const images = body.spec.template.spec.containers.map((each: { image: string }) => each.image)
      expect(images.sort()).toEqual(['i:1', 'j:2'])
    })

    it('refuses what is no patch, and a patch of another version', async () => {
      const at = await place()
      await ask('POST', at, { body: configMap('a', { x: '1' }) })
      expect((await ask('PATCH', `${at}/a`, { body: {}, type: 'application/json' })).code).toBe(415)
      expect((await ask('PATCH', `${at}/a`, { body: '{x', type: merge })).code).toBe(400)
      expect((await ask('PATCH', `${at}/none`, { body: {}, type: merge })).code).toBe(404)
      const stale = await ask('PATCH', `${at}/a`, { body: { metadata: { resourceVersion: '1' } }, type: merge })
      expect(stale.code).toBe(409)
    })
  })

  describe('server-side apply', () => {
    const apply = 'application/apply-patch+yaml'
    const owned = (name: string, data: Record<string, string>) => JSON.stringify(configMap(name, data))

    it('creates what is missing and remembers who set which field', async () => {
      const at = await place()
      const made = await ask('PATCH', `${at}/a`, {
        body: owned('a', { x: '1' }),
        type: apply,
        query: { fieldManager: 'one' },
      })
      expect(made.code).toBe(201)
      expect(made.body.metadata.managedFields).toMatchObject([
        {
          manager: 'one',
          operation: 'Apply',
          apiVersion: 'v1',
          fieldsType: 'FieldsV1',
          fieldsV1: { 'f:data': { 'f:x': {} } },
        },
      ])
      const again = await ask('PATCH', `${at}/a`, {
        body: owned('a', { x: '1' }),
        type: apply,
        query: { fieldManager: 'one' },
      })
      expect(again.code).toBe(200)
      expect(again.body.metadata.resourceVersion).toBe(made.body.metadata.resourceVersion)
    })

    it('refuses to take a field from another manager, unless forced', async () => {
      const at = await place()
      await ask('PATCH', `${at}/a`, { body: owned('a', { x: '1' }), type: apply, query: { fieldManager: 'one' } })
      const refused = await ask('PATCH', `${at}/a`, {
        body: owned('a', { x: '2' }),
        type: apply,
        query: { fieldManager: 'two' },
      })
      expect(refused.code).toBe(409)
      expect(refused.body).toMatchObject({
        reason: 'Conflict',
        message: 'Apply failed with 1 conflict: conflict with "one": .data.x',
        details: { causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.data.x' }] },
      })
      const forced = await ask('PATCH', `${at}/a`, {
        body: owned('a', { x: '2' }),
        type: apply,
        query: { fieldManager: 'two', force: 'true' },
      })
      expect(forced.body.data).toEqual({ x: '2' })
    })

    it('removes what its manager no longer names and nobody else set', async () => {
      const at = await place()
      await ask('PATCH', `${at}/a`, {
        body: owned('a', { x: '1', y: '1' }),
        type: apply,
        query: { fieldManager: 'one' },
      })
      await ask('PATCH', `${at}/a`, {
        body: { data: { z: '1' } },
        type: 'application/merge-patch+json',
        agent: 'editor/1',
      })
      const { body } = await ask('PATCH', `${at}/a`, {
        body: owned('a', { x: '1' }),
        type: apply,
        query: { fieldManager: 'one' },
      })
      expect(body.data).toEqual({ x: '1', z: '1' })
      const managers = body.metadata.managedFields.map((entry: { manager: string; operation: string }) => [
        entry.manager,
        entry.operation,
      ])
      expect(managers).toEqual([
        ['one', 'Apply'],
        ['editor', 'Update'],
      ])
    })

    it('wants to know who applies', async () => {
      const at = await place()
      const answer = await ask('PATCH', `${at}/a`, { body: owned('a', {}), type: apply })
      expect([400, 422]).toContain(answer.code)
      expect(answer.body.message).toContain('fieldManager: Required value: is required for apply patch')
    })
  })
}
