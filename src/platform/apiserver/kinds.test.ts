import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Change, type KindCase, kindCases } from './behaviour/kinds.ts'
import { type Answer, freshNamespace, type Subject, subjects } from './behaviour/subject.ts'

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses'
/** Lets bound claims grow, which a plugin of the original asks for. */
const growing = { metadata: { name: 'fast' }, provisioner: 'csi.example.com', allowVolumeExpansion: true }
const [embedded, , original] = subjects

type Json = Record<string, unknown>

/** A copy with another value at a path. */
function changed(object: Readonly<Json>, [path, value]: Change): Json {
  const copy = structuredClone(object) as Json
  const names = path.split('.')
  const last = names.pop() ?? ''
  let holder = copy
  for (const name of names) {
    holder[name] ??= {}
    holder = holder[name] as Json
  }
  if (value === undefined) delete holder[last]
  else holder[last] = value
  return copy
}

const UID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g
const NOW = /"lastPhaseTransitionTime":"[^"]+"/g

interface Cause {
  readonly reason: string
  readonly field: string
  readonly message: string
}

/** Without what the original prints of its own structures: the difference of two specs, the whole of a template. */
const causeText = ({ reason, field, message }: Cause): string =>
  `${reason} ${field}: ${message.split('\n@@')[0]?.replace(/^(Invalid value: )\{.*"spec".*\}(?=: )/i, '$1{…}')}`

/** What two servers may differ in: identities, times, who wrote, the order of faults. */
function comparable({ code, body }: Answer): unknown {
  const plain = (said: unknown) =>
    JSON.parse(
      JSON.stringify(said, (_, value) => value ?? undefined)
        .replace(UID, 'UID')
        .replace(NOW, '"since":""'),
    )
  if (code >= 400) {
    const causes: string[] = (body.details?.causes ?? []).map(causeText).sort()
    return plain({ code, reason: body.reason, causes, ...(causes.length > 0 ? {} : { message: body.message }) })
  }
  const { uid: _, resourceVersion: __, creationTimestamp: ___, managedFields: ____, ...metadata } = body.metadata
  return plain({ code, ...body, metadata })
}

interface TableBody {
  readonly columnDefinitions: readonly { name: string; type: string; format: string; priority: number }[]
  readonly rows: readonly { cells: unknown[] }[]
}

/** Columns and cells; ages are a matter of when one looks. */
function comparableTable({ body }: Answer): unknown {
  const { columnDefinitions, rows } = body as TableBody
  const ageAt = columnDefinitions.findIndex(({ name }) => name === 'Age')
  return {
    columns: columnDefinitions.map(({ name, type, format, priority }) => ({ name, type, format, priority })),
    cells: rows.map(({ cells }) =>
      cells.map((cell, at) =>
        at === ageAt ? typeof cell : typeof cell === 'string' ? cell.replace(UID, 'UID') : cell,
      ),
    ),
  }
}

describe.skipIf(original?.skip)(`built-in kinds beside a real kube-apiserver (${original?.skip ?? 'found'})`, () => {
  const both: Subject[] = []
  let namespaces: string[] = []
  beforeAll(async () => {
    for (const subject of [embedded, original]) if (subject) both.push(await subject.start())
    namespaces = await Promise.all(both.map(freshNamespace))
    for (const subject of both) await subject.ask('POST', CLASSES, { body: growing })
  })
  afterAll(() => Promise.all(both.map((subject) => subject[Symbol.asyncDispose]())))

  type Said = (subject: Subject, namespace: string) => Promise<unknown>
  async function expectSame(say: Said): Promise<void> {
    const [ours, theirs] = await Promise.all(both.map((subject, index) => say(subject, namespaces[index] ?? '')))
    // They are made one after the other, perhaps in two seconds.
    const plain = (said: unknown) =>
      JSON.parse(
        namespaces.reduce(
          (text, name) => text.replaceAll(name, 'NAMESPACE'),
          JSON.stringify(said).replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, 'its second'),
        ),
      )
    expect(plain(ours)).toEqual(plain(theirs))
  }

  describe.each(kindCases)('$name', ({ path, object, created = [], updated = [], status }: KindCase) => {
    const at = (namespace: string) => path.replace('{namespace}', namespace)

    it('is stored and shown the same', async () => {
      await expectSame(async (subject, namespace) =>
        comparable(await subject.ask('POST', at(namespace), { body: object })),
      )
      if (status)
        await expectSame(async (subject, namespace) => {
          const one = `${at(namespace)}/sample`
          const { body } = await subject.ask('GET', one)
          return comparable(await subject.ask('PUT', `${one}/status`, { body: { ...body, status } }))
        })
      await expectSame(async (subject, namespace) =>
        comparableTable(await subject.ask('GET', `${at(namespace)}/sample`, { accept: TABLE })),
      )
    })

    it.each(created.map((change) => ({ change, to: JSON.stringify(change[1]) })))(
      'is created the same with $change.0 $to',
      ({ change }) =>
        expectSame(async (subject, namespace) => {
          const renamed = changed(object, ['metadata.name', 'other'])
          return comparable(
            await subject.ask('POST', `${at(namespace)}?dryRun=All`, { body: changed(renamed, change) }),
          )
        }),
    )

    it.each(updated.map((change) => ({ change, to: JSON.stringify(change[1]) })))(
      'is changed the same with $change.0 $to',
      ({ change }) =>
        expectSame(async (subject, namespace) => {
          const one = `${at(namespace)}/sample`
          const { body } = await subject.ask('GET', one)
          return comparable(await subject.ask('PUT', `${one}?dryRun=All`, { body: changed(body, change) }))
        }),
    )
  })
  it.each([
    '/api/v1',
    '/apis/apps/v1',
    '/apis/batch/v1',
    '/apis/storage.k8s.io/v1',
    '/apis/networking.k8s.io/v1',
    '/apis/discovery.k8s.io/v1',
    '/apis/autoscaling/v2',
    '/apis/policy/v1',
    '/apis/scheduling.k8s.io/v1',
    '/apis/node.k8s.io/v1',
    '/apis/admissionregistration.k8s.io/v1',
    '/apis/flowcontrol.apiserver.k8s.io/v1',
    '/apis/apiregistration.k8s.io/v1',
  ])('are announced the same below %s', async (path) => {
    const [ours, theirs] = await Promise.all(both.map(async (subject) => (await subject.ask('GET', path)).body))
    interface Announced {
      readonly name: string
      readonly verbs: readonly string[]
    }
    const plain = (body: { resources: Announced[] }) =>
      new Map(
        body.resources.map(({ verbs, ...rest }) => [
          rest.name,
          { ...rest, storageVersionHash: undefined, verbs: [...verbs].sort() },
        ]),
      )
    for (const [name, announced] of plain(ours)) expect(announced, name).toEqual(plain(theirs).get(name))
  })
})
