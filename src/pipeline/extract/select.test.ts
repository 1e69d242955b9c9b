import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { KollectTargetSpec } from '#kinds'
import { compileSelection } from './select.ts'

const gvk = { group: 'apps', version: 'v1', kind: 'Deployment' }
const namespaces = [
  { name: 'own', labels: {} },
  { name: 'a', labels: { team: 'x' } },
  { name: 'b', labels: { team: 'x', tier: 'test' } },
  { name: 'c', labels: { team: 'y' } },
]
const selection = (spec: Partial<KollectTargetSpec>, namespace: string | undefined = 'own') =>
  compileSelection({ spec: { profileRef: 'p', ...spec }, namespace }, gvk)
const object = (labels: Record<string, string> = {}, more: object = {}) => ({
  metadata: { name: 'web', namespace: 'a', uid: 'u', labels },
  spec: { replicas: 3, password: 'hunter2' },
  ...more,
})

describe('namespaces of a target', () => {
  it.each<[string, Partial<KollectTargetSpec>, string[]]>([
    ['says nothing: its own', {}, ['own']],
    ['names some', { includedNamespaces: ['a', 'c', 'missing'] }, ['a', 'c']],
    ['selects by labels', { namespaceSelector: { matchLabels: { team: 'x' } } }, ['a', 'b']],
    [
      'does both: what is in both',
      { includedNamespaces: ['a', 'c'], namespaceSelector: { matchLabels: { team: 'x' } } },
      ['a'],
    ],
    ['excludes by name', { includedNamespaces: ['a', 'b'], excludedNamespaces: ['a'] }, ['b']],
    [
      'excludes by labels',
      { namespaceSelector: {}, namespaceExcludeSelector: { matchExpressions: [{ key: 'tier', operator: 'Exists' }] } },
      ['own', 'a', 'c'],
    ],
    ['excludes only: its own', { excludedNamespaces: ['a'] }, ['own']],
    [
      'has an operator nobody knows',
      { namespaceSelector: { matchExpressions: [{ key: 'team', operator: 'Like', values: ['x'] }] } },
      [],
    ],
  ])('that %s', (_, spec, chosen) => expect(selection(spec).namespaces(namespaces)).toEqual(chosen))
})

describe('objects of a target', () => {
  const [, a] = namespaces
  const says = (labels: Record<string, string>, annotations: Record<string, string> = {}) => ({
    name: 'a',
    labels,
    annotations,
  })

  it.each<
    [string, Partial<KollectTargetSpec>, ReturnType<typeof object>, ReturnType<typeof says> | undefined, boolean]
  >([
    ['as it is', {}, object(), says({}), true],
    ['that opts out', {}, object({ 'kollect.dev/watch': 'disabled' }), says({ 'kollect.dev/watch': 'enabled' }), false],
    [
      'that opts in, of a namespace that opts out',
      {},
      object({ 'kollect.dev/watch': 'enabled' }),
      says({ 'kollect.dev/watch': 'disabled' }),
      true,
    ],
    ['of a namespace that opts out by label', {}, object(), says({ 'kollect.dev/watch': 'disabled' }), false],
    [
      'of a namespace that opts out by annotation',
      {},
      object(),
      says({ 'kollect.dev/watch': 'enabled' }, { 'kollect.dev/namespace-watch': 'disabled' }),
      false,
    ],
    ['that says Disabled', {}, object({ 'kollect.dev/watch': 'Disabled' }), says({}), true],
    ['by opt-in, silent', { watchMode: 'OptIn' }, object(), says({}), false],
    [
      'by opt-in, in a namespace that opts in',
      { watchMode: 'OptIn' },
      object(),
      says({}, { 'kollect.dev/namespace-watch': 'enabled' }),
      true,
    ],
    ['by opt-in, of a namespace nobody knows', { watchMode: 'OptIn' }, object(), undefined, false],
    [
      'with labels that are wanted',
      { labelSelector: { matchLabels: { app: 'web' } } },
      object({ app: 'web' }),
      says({}),
      true,
    ],
    ['without them', { labelSelector: { matchLabels: { app: 'web' } } }, object(), says({}), false],
    ['of a name that is wanted', { names: ['web'] }, object(), says({}), true],
    ['of another name', { names: ['db'] }, object(), says({}), false],
  ])('one %s', (_, spec, one, namespace, is) => expect(selection(spec).chooses(one, namespace)).toBe(is))

  const rule = (more: object) => ({ resourceRules: [{ gvk, ...more }] })
  it.each<[string, Partial<KollectTargetSpec>, boolean]>([
    ['holds by its expression', rule({ matchPolicy: 'object.spec.replicas > 2' }), true],
    ['does not', rule({ matchPolicy: 'object.spec.replicas > 5' }), false],
    ['fails', rule({ matchPolicy: 'object.none > 5' }), false],
    ['says no truth', rule({ matchPolicy: '"yes"' }), false],
    ['is no expression', rule({ matchPolicy: '(' }), false],
    ['asks for a secret', rule({ matchPolicy: 'object.spec.password == "hunter2"' }), false],
    ['is for another kind', { resourceRules: [{ gvk: { version: 'v1', kind: 'Pod' } }] }, false],
    ['wants other namespaces', rule({ namespaceSelector: { matchLabels: { team: 'y' } } }), false],
    [
      'is one of several that hold',
      { resourceRules: [{ gvk: { version: 'v1', kind: 'Pod' } }, { gvk, matchLabels: { app: 'web' } }] },
      true,
    ],
    ['makes names and labels of the target mean nothing', { ...rule({}), names: ['db'] }, true],
  ])('by a rule that %s', (_, spec, is) => expect(selection(spec).chooses(object({ app: 'web' }), a)).toBe(is))

  const list = '[1,2,3,4,5,6,7,8,9]'
  const deep = (levels: number) =>
    Array.from({ length: levels }).reduce<string>((inner, _, i) => `${list}.all(x${i}, ${inner})`, 'true')

  it('that a policy was stopped for is not known to be one or the other: it takes too many steps, or the machine was slow', () => {
    const chooses = (...policies: readonly string[]) =>
      selection({ resourceRules: policies.map((matchPolicy) => ({ gvk, matchPolicy })) }).chooses(object({}), a)
    expect([chooses(deep(3)), chooses(deep(6)), chooses(deep(6), 'true'), chooses(deep(6), 'false')]).toEqual([
      true,
      'costly',
      true,
      'costly',
    ])
    let now = 0
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 100))
    onTestFinished(() => void vi.restoreAllMocks())
    expect([chooses(deep(4)), chooses(deep(6), deep(4)), chooses(deep(4), 'true')]).toEqual(['late', 'late', true])
  })

  it('that are none are not chosen', () => {
    for (const none of [null, 1, {}, { metadata: 'x' }]) expect(selection({}).chooses(none, a)).toBe(false)
  })
})
