import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { applyDefaults, builtInSchema } from '../schema/index.ts'
import type { ApiObject, ManagedFieldsEntry, Schema } from '../types.ts'
import { fromFieldsV1, pathsOf, printPath, toFieldsV1 } from './field-set.ts'
import { ApplyConflictError, ApplyRefusedError, applyConfiguration, trackUpdate } from './index.ts'

const text: Schema = { type: 'string' }
const schema: Schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      properties: {
        text,
        list: { type: 'array', items: text },
        set: { type: 'array', items: text, 'x-kubernetes-list-type': 'set' },
        items: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: { type: 'object', properties: { name: text, value: text, note: text } },
        },
        map: { type: 'object', additionalProperties: text },
        whole: { type: 'object', additionalProperties: text, 'x-kubernetes-map-type': 'atomic' },
        open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      },
    },
    status: { type: 'object', properties: { phase: text } },
  },
}

const NOW = '2026-01-01T00:00:00Z'
const LATER = '2026-01-02T00:00:00Z'

const thing = (spec: object, metadata: object = {}): ApiObject =>
  ({ apiVersion: 'x.io/v1', kind: 'Thing', metadata: { name: 'a', ...metadata }, spec }) as ApiObject

interface Options {
  readonly force?: boolean
  readonly now?: string
  readonly subresource?: string
}
const apply = (
  live: ApiObject | undefined,
  manager: string,
  config: ApiObject,
  { now = NOW, ...options }: Options = {},
): ApiObject =>
  applyDefaults(schema, applyConfiguration({ live, config, manager, schema, now, status: true, ...options }))

const put = (before: ApiObject | undefined, manager: string, after: ApiObject, now = NOW): ApiObject => {
  const managedFields = trackUpdate({ before, after, manager, schema, now, status: true })
  return { ...after, metadata: { ...after.metadata, managedFields } }
}

const owners = (object: ApiObject): ManagedFieldsEntry[] => object.metadata.managedFields ?? []
const owned = (object: ApiObject, manager: string): string[] =>
  owners(object)
    .filter((entry) => entry.manager === manager)
    .flatMap((entry) => pathsOf(fromFieldsV1(entry.fieldsV1) as NonNullable<ReturnType<typeof fromFieldsV1>>))
    .map(printPath)
const conflictsOf = (attempt: () => unknown): readonly { manager: string; path: string }[] => {
  try {
    attempt()
    return []
  } catch (error) {
    if (error instanceof ApplyConflictError) return error.conflicts
    throw error
  }
}

describe('applyConfiguration', () => {
  it('owns what it says, and nothing else', () => {
    const object = apply(
      undefined,
      'red',
      thing({ text: 'a', map: { x: '1' }, items: [{ name: 'i', value: '1' }] }, { labels: { l: '1' } }),
    )
    expect(owned(object, 'red')).toEqual([
      '.metadata.labels.l',
      '.spec.items[name="i"]',
      '.spec.items[name="i"].name',
      '.spec.items[name="i"].value',
      '.spec.map.x',
      '.spec.text',
    ])
    expect(owners(object)[0]).toMatchObject({
      manager: 'red',
      operation: 'Apply',
      apiVersion: 'x.io/v1',
      time: NOW,
      fieldsType: 'FieldsV1',
    })
  })

  it('removes what its manager says no longer, and keeps what others own', () => {
    const first = apply(undefined, 'red', thing({ text: 'a', map: { x: '1', y: '2' } }))
    const second = apply(first, 'blue', thing({ map: { y: '2', z: '3' } }))
    const third = apply(second, 'red', thing({ text: 'a' }))
    expect(third.spec).toEqual({ text: 'a', map: { y: '2', z: '3' } })
    expect(owned(third, 'red')).toEqual(['.spec.text'])
  })

  it('leaves an item that another manager still says something of', () => {
    const first = apply(undefined, 'red', thing({ items: [{ name: 'i', value: '1' }] }))
    const second = apply(first, 'blue', thing({ items: [{ name: 'i', note: 'n' }] }))
    expect(apply(second, 'red', thing({})).spec).toEqual({ items: [{ name: 'i', note: 'n' }] })
  })

  it('refuses to change what another owns, naming both, and takes it over by force', () => {
    const first = apply(undefined, 'red', thing({ text: 'a', list: ['a'] }))
    const config = thing({ text: 'b', list: ['a', 'b'] })
    const conflicts = conflictsOf(() => apply(first, 'blue', config))
    expect(conflicts).toEqual([
      { manager: '"red"', path: '.spec.list' },
      { manager: '"red"', path: '.spec.text' },
    ])
    const forced = apply(first, 'blue', config, { force: true })
    expect(forced.spec).toEqual({ text: 'b', list: ['a', 'b'] })
    expect([owned(forced, 'red'), owned(forced, 'blue')]).toEqual([[], ['.spec.list', '.spec.text']])
  })

  it('words its conflicts as the API does', () => {
    const object = put(undefined, 'kubectl', thing({ text: 'a', map: { x: '1' } }))
    expect(() => apply(object, 'red', thing({ text: 'b' }))).toThrow(
      'Apply failed with 1 conflict: conflict with "kubectl" using x.io/v1: .spec.text',
    )
    expect(() => apply(object, 'red', thing({ text: 'b', map: { x: '2' } }))).toThrow(
      'Apply failed with 2 conflicts: conflicts with "kubectl" using x.io/v1:\n- .spec.map.x\n- .spec.text',
    )
  })

  it('shares a value that two managers agree on', () => {
    const both = apply(apply(undefined, 'red', thing({ text: 'a' })), 'blue', thing({ text: 'a' }))
    expect([owned(both, 'red'), owned(both, 'blue')]).toEqual([['.spec.text'], ['.spec.text']])
  })

  it('keeps its own field when the value was set by an update in between: that is a conflict no more', () => {
    const first = apply(undefined, 'red', thing({ text: 'a' }))
    const edited = put(first, 'editor', thing({ text: 'b' }, { managedFields: owners(first) }))
    expect(owned(edited, 'red')).toEqual([])
    expect(conflictsOf(() => apply(edited, 'red', thing({ text: 'a' })))).toEqual([
      { manager: '"editor" using x.io/v1', path: '.spec.text' },
    ])
  })

  it('takes objects from before the bookkeeping for the work of one unknown writer', () => {
    const object = apply(thing({ text: 'a', map: { x: '1' } }), 'red', thing({ text: 'a' }))
    expect(owners(object).map(({ manager, operation }) => [manager, operation])).toEqual([
      ['red', 'Apply'],
      ['before-first-apply', 'Update'],
    ])
  })

  it('keeps what belongs to the status out of the main door, and the specification out of the other', () => {
    const main = apply(undefined, 'red', { ...thing({ text: 'a' }), status: { phase: 'x' } })
    expect(owned(main, 'red')).toEqual(['.spec.text'])
    const status = apply(main, 'red', { ...thing({ text: 'b' }), status: { phase: 'y' } }, { subresource: 'status' })
    expect(owners(status).map(({ subresource, fieldsV1 }) => [subresource, fieldsV1])).toEqual([
      [undefined, { 'f:spec': { 'f:text': {} } }],
      ['status', { 'f:status': { 'f:phase': {} } }],
    ])
  })

  it('refuses a configuration that names owners, or one item twice', () => {
    expect(() => apply(undefined, 'red', thing({}, { managedFields: [] }))).toThrow(ApplyRefusedError)
    expect(() => apply(undefined, 'red', thing({ items: [{ name: 'i' }, { name: 'i' }] }))).toThrow(
      /spec\.items\[name="i"\]/,
    )
  })

  it('changes no time where nothing changes', () => {
    const first = apply(undefined, 'red', thing({ text: 'a' }))
    expect(apply(first, 'red', thing({ text: 'a' }), { now: LATER })).toEqual(first)
  })

  it('takes __proto__ for a name like any other', () => {
    const config = thing({ open: JSON.parse('{"__proto__":{"a":1}}') })
    const object = apply(undefined, 'red', config)
    expect(JSON.stringify(object.spec)).toBe('{"open":{"__proto__":{"a":1}}}')
    expect(owned(object, 'red')).toEqual(['.spec.open.__proto__', '.spec.open.__proto__.a'])
  })
})

describe('applyConfiguration, for any configurations', () => {
  const some = <T>(fields: Record<string, fc.Arbitrary<T>>) => fc.record(fields, { requiredKeys: [] })
  const specOf = (word: fc.Arbitrary<string>) =>
    some<unknown>({
      text: word,
      list: fc.array(word, { minLength: 1, maxLength: 1 }),
      set: fc.uniqueArray(fc.constantFrom('a', 'b', 'c'), { minLength: 1 }),
      items: fc.uniqueArray(
        fc.record({ name: fc.constantFrom('a', 'b', 'c'), value: word, note: word }, { requiredKeys: ['name'] }),
        { selector: ({ name }) => name, minLength: 1 },
      ),
      map: fc.dictionary(fc.constantFrom('a', 'b', 'c'), word, { minKeys: 1 }),
      whole: fc.record({ a: word }),
      open: fc.dictionary(fc.constantFrom('a', 'b'), fc.dictionary(fc.constantFrom('c', 'd'), word, { minKeys: 1 }), {
        minKeys: 1,
      }),
    }).filter((spec) => Object.keys(spec).length > 0)
  const config = specOf(fc.constantFrom('1', '2')).map((spec) => thing(spec))
  /** Configurations that agree wherever they meet. */
  const agreeing = specOf(fc.constant('1')).map((spec) => thing(spec))
  const nothing = { apiVersion: 'x.io/v1', kind: 'Thing', metadata: { name: 'a' } } as ApiObject
  const manager = fc.constantFrom('red', 'green', 'blue')
  const history = fc
    .array(fc.tuple(manager, config), { maxLength: 4 })
    .map((steps) =>
      steps.reduce<ApiObject | undefined>(
        (live, [manager, config]) => apply(live, manager, config, { force: true }),
        undefined,
      ),
    )
  // The order of a set is no statement; what two appliers bring may stand either way.
  const unordered = (object: ApiObject) => {
    const { set, items, ...rest } = object.spec as { set?: string[]; items?: { name: string }[] }
    return {
      ...rest,
      set: [...(set ?? [])].sort(),
      items: [...(items ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1)),
    }
  }

  it('says the same when it is applied twice', () => {
    fc.assert(
      fc.property(history, manager, config, (live, manager, config) => {
        const once = apply(live, manager, config, { force: true })
        expect(apply(once, manager, config, { now: LATER })).toEqual(once)
      }),
    )
  })

  it('says what the configuration says', () => {
    fc.assert(
      fc.property(history, manager, config, (live, manager, config) => {
        const object = apply(live, manager, config, { force: true })
        // Applying it once more as somebody else changes no value, so nobody is in its way.
        expect(conflictsOf(() => apply(object, 'other', config))).toEqual([])
      }),
    )
  })

  it('gives back what was there before once it says nothing more, where it changed nothing of others', () => {
    fc.assert(
      fc.property(agreeing, agreeing, (theirs, mine) => {
        const before = apply(undefined, 'red', theirs)
        const after = apply(apply(before, 'blue', mine), 'blue', nothing)
        expect(unordered(after)).toEqual(unordered(before))
        expect(owners(after)).toEqual(owners(before))
      }),
    )
  })

  it('comes to the same in either order, where two have no conflict', () => {
    fc.assert(
      fc.property(agreeing, agreeing, (one, other) => {
        const first = apply(undefined, 'red', one)
        const second = apply(undefined, 'blue', other)
        const [ab, ba] = [apply(first, 'blue', other), apply(second, 'red', one)]
        expect(unordered(ab)).toEqual(unordered(ba))
        expect([...owners(ab)].sort((a, b) => (a.manager < b.manager ? -1 : 1))).toEqual(
          [...owners(ba)].sort((a, b) => (a.manager < b.manager ? -1 : 1)),
        )
      }),
    )
  })

  it('never lets two managers own different values, and conflicts exactly where it would', () => {
    fc.assert(
      fc.property(history, manager, config, (live, manager, config) => {
        const conflicts = conflictsOf(() => apply(live, manager, config))
        const forced = apply(live, manager, config, { force: true })
        for (const { path } of conflicts) {
          for (const entry of owners(forced))
            if (entry.manager !== manager) expect(owned(forced, entry.manager)).not.toContain(path)
        }
        if (conflicts.length === 0) expect(apply(live, manager, config)).toEqual(forced)
      }),
    )
  })
})

describe('trackUpdate', () => {
  it('gives the writer what it changed, and takes that from everybody else', () => {
    const first = apply(undefined, 'red', thing({ text: 'a', map: { x: '1', y: '1' } }))
    const edited = put(first, 'editor', thing({ text: 'a', map: { x: '2', z: '3' } }), LATER)
    expect(owned(edited, 'red')).toEqual(['.spec.text'])
    expect(owned(edited, 'editor')).toEqual(['.spec.map.x', '.spec.map.z'])
    expect(owners(edited).map(({ time }) => time)).toEqual([NOW, LATER])
  })
  it('changes nothing where nothing changed', () => {
    const first = put(undefined, 'editor', thing({ text: 'a' }))
    expect(owners(put(first, 'other', thing({ text: 'a' }), LATER))).toEqual(owners(first))
  })
  it('leaves out what names the object and what is the server’s', () => {
    const metadata = {
      namespace: 'n',
      uid: 'u',
      resourceVersion: '1',
      generation: 1,
      creationTimestamp: NOW,
      labels: { l: '1' },
    }
    expect(owned(put(undefined, 'editor', thing({ text: 'a' }, metadata)), 'editor')).toEqual([
      '.metadata.labels',
      '.metadata.labels.l',
      '.spec',
      '.spec.text',
    ])
  })
  it('leaves out the status of kinds that have a door of its own for it', () => {
    const node = builtInSchema('', 'v1', 'Node') as Schema
    const after = {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n', labels: { a: '1' } },
      status: { phase: 'Running' },
    } as ApiObject
    const [main] = trackUpdate({ before: undefined, after, manager: 'm', schema: node, now: NOW })
    expect(main?.fieldsV1).toEqual({ 'f:metadata': { 'f:labels': { '.': {}, 'f:a': {} } } })
  })
  it('forgets all owners when asked to', () => {
    const first = put(undefined, 'editor', thing({ text: 'a' }))
    expect(owners(put(first, 'editor', thing({ text: 'b' }, { managedFields: [] })))).toEqual([])
  })
  it('keeps the list of updaters short by putting the oldest together', () => {
    let object: ApiObject | undefined
    for (let round = 0; round < 15; round++) {
      const map = { ...((object?.spec as { map?: object } | undefined)?.map ?? {}), [`k${round}`]: '1' }
      object = put(
        object,
        `writer-${String(round).padStart(2, '0')}`,
        thing({ map }),
        `2026-01-01T00:00:${String(round).padStart(2, '0')}Z`,
      )
    }
    expect(owners(object as ApiObject)).toHaveLength(10)
    expect(owned(object as ApiObject, 'ancient-changes')).toContain('.spec.map.k0')
  })
})

describe('FieldsV1', () => {
  it('is held once for all objects whose writers set the same, and nobody can change it', () => {
    const [one, other] = ['a', 'b'].map((name) => put(undefined, 'hub', thing({ text: name }, { name })))
    const fieldsOf = (object: ApiObject | undefined) => owners(object as ApiObject)[0]?.fieldsV1
    expect(fieldsOf(one)).toEqual({ 'f:spec': { '.': {}, 'f:text': {} } })
    expect(fieldsOf(other)).toBe(fieldsOf(one))
    expect(Object.isFrozen((fieldsOf(one) as Record<string, unknown>)['f:spec'])).toBe(true)
  })
  it('is read as it is written', () => {
    const fields = {
      'f:a': { '.': {}, 'f:b': {} },
      'f:l': { 'k:{"name":"x","port":80}': { '.': {}, 'f:v': {} }, 'v:"y"': {}, 'i:0': {} },
    }
    expect(toFieldsV1(fromFieldsV1(fields) as NonNullable<ReturnType<typeof fromFieldsV1>>)).toEqual(fields)
  })
  it.each([[null], [[]], [{ a: {} }], [{ 'k:{': {} }], [{ 'f:a': 1 }]])('refuses %j', (fields) =>
    expect(fromFieldsV1(fields)).toBeUndefined(),
  )
})
