import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Kind, kollectKinds, ocmKinds, refusedKollectKinds } from '#kinds'
import { type Answer, type Subject, subjects } from './behaviour/subject.ts'

const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const [embedded, , original] = subjects

type Kinds = Kind<unknown, unknown>

interface Example {
  readonly metadata: { readonly name: string; readonly namespace?: string }
}

const exampleOf = ({ definition }: Kinds) => definition.example as unknown as Example

function pathOf(kind: Kinds, version: string): string {
  const { namespace } = exampleOf(kind).metadata
  return `/apis/${kind.group}/${version}${namespace ? `/namespaces/${namespace}` : ''}/${kind.plural}`
}

/** Without what differs from server to server. */
function comparable({ code, body }: Answer): unknown {
  if (code >= 400) return { code, reason: body.reason }
  const { uid: _, resourceVersion: __, creationTimestamp: ___, managedFields: ____, ...metadata } = body.metadata
  return { code, ...body, metadata }
}

const cells = ({ body }: Answer) => ({
  columns: body.columnDefinitions?.map(({ name, type, priority }: { name: string; type: string; priority: number }) => [
    name,
    type,
    priority,
  ]),
  rows: body.rows?.map(({ cells: row }: { cells: unknown[] }) =>
    row.map((cell, at) => (at === row.length - 1 ? typeof cell : cell)),
  ),
})

const ours: readonly Kinds[] = [...ocmKinds, ...kollectKinds]

describe.skipIf(original?.skip)(
  `kinds of Open Cluster Management and of inventory beside a real kube-apiserver (${original?.skip ?? 'found'})`,
  () => {
    const both: Subject[] = []
    beforeAll(async () => {
      for (const subject of [embedded, original]) if (subject) both.push(await subject.start())
      const namespaces = new Set(ours.map((kind) => exampleOf(kind).metadata.namespace).filter(Boolean))
      for (const subject of both) {
        for (const name of namespaces) await subject.ask('POST', '/api/v1/namespaces', { body: { metadata: { name } } })
        for (const kind of [...ours, ...refusedKollectKinds]) {
          const { code, body } = await subject.ask('POST', CRDS, { body: kind.crd() })
          expect(code, JSON.stringify(body)).toBe(201)
        }
      }
      for (const subject of both)
        for (const kind of ours)
          await vi.waitFor(async () => expect((await subject.ask('GET', pathOf(kind, kind.version))).code).toBe(200), {
            timeout: 30_000,
          })
    })
    afterAll(() => Promise.all(both.map((subject) => subject[Symbol.asyncDispose]())))

    async function expectSame(say: (subject: Subject) => Promise<unknown>): Promise<void> {
      const [ours, theirs] = await Promise.all(both.map(say))
      expect(ours).toEqual(theirs)
    }

    describe.each(ours.map((kind) => ({ name: kind.definition.kind, kind })))('$name', ({ kind }) => {
      const versions = (kind.crd().spec.versions as { name: string }[]).map(({ name }) => name)

      it('is defined without a word of complaint: names, structure and schema are taken as they are', () =>
        expectSame(async (subject) => {
          const { body } = await subject.ask('GET', `${CRDS}/${kind.plural}.${kind.group}`)
          const { conditions, storedVersions } = body.status
          const said = conditions
            .map(({ type, status }: { type: string; status: string }) => `${type} ${status}`)
            .sort()
          return { names: body.spec.names, scope: body.spec.scope, said, storedVersions }
        }))

      it('is stored with the same defaults, shown in the same columns, in every version', async () => {
        await expectSame(async (subject) => {
          const made = await subject.ask('POST', pathOf(kind, kind.version), { body: kind.definition.example })
          expect(made.code, JSON.stringify(made.body)).toBe(201)
          return comparable(made)
        })
        for (const version of versions)
          await expectSame(async (subject) => {
            const one = `${pathOf(kind, version)}/${exampleOf(kind).metadata.name}`
            const [object, table] = [await subject.ask('GET', one), await subject.ask('GET', one, { accept: TABLE })]
            return { object: comparable(object), table: cells(table) }
          })
      })

      it('is announced the same', () =>
        expectSame(async (subject) => {
          const { body } = await subject.ask('GET', `/apis/${kind.group}/${kind.version}`)
          const named = (body.resources as { name: string; verbs: string[] }[]).filter(
            ({ name }) => name.split('/')[0] === kind.plural,
          )
          return named
            .map(({ verbs, ...rest }) => ({ ...rest, storageVersionHash: undefined, verbs: [...verbs].sort() }))
            .sort((a, b) => a.name.localeCompare(b.name))
        }))
    })
  },
)
