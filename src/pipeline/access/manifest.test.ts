import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { policiesOfManifest } from './manifest.ts'
import { names, policy } from './testing/words.ts'

const now = Date.UTC(2026, 0, 1)
const kind = { apiVersion: 'clusterpulse.io/v1alpha1', kind: 'MonitorAccessPolicy' }
const written = (name: string, rule: object = names('west')) => ({
  ...kind,
  ...policy('Allow', [rule as never], { name }),
})
const read = (text: string) => {
  const { policies, findings } = policiesOfManifest(text, { now })
  return {
    names: policies.map(({ namespace, policy_name }) => `${namespace}/${policy_name}`),
    errors: findings
      .filter(({ finding }) => finding.severity === 'error')
      .map(({ policy: at, finding }) => `${at} ${finding.code}`),
    warnings: findings
      .filter(({ finding }) => finding.severity === 'warning')
      .map(({ policy: at, finding }) => `${at} ${finding.code}`),
  }
}

describe('policies of a manifest', () => {
  it('are read from many documents, from JSON, and from a list', () => {
    const many = `${stringify(written('a'))}\n---\n${stringify(written('b'))}`
    expect(read(many).names).toEqual(['clusterpulse/a', 'clusterpulse/b'])
    expect(read(JSON.stringify(written('a'))).names).toEqual(['clusterpulse/a'])
    const list = { apiVersion: 'v1', kind: 'List', items: [written('a'), { kind: 'Secret' }, 7] }
    expect(read(stringify(list))).toMatchObject({
      names: ['clusterpulse/a'],
      warnings: ['document 1, item 2 not_a_policy', 'document 1, item 3 not_a_policy'],
    })
  })

  it('take the namespace they name, and the given one where they name none', () => {
    const { metadata, ...rest } = written('a')
    const text = (namespace?: string) =>
      stringify({ ...rest, metadata: { name: metadata.name, ...(namespace && { namespace }) } })
    expect(read(text('team')).names).toEqual(['team/a'])
    expect(policiesOfManifest(text(), { now, namespace: 'hub' }).policies).toMatchObject([{ namespace: 'hub' }])
  })

  it('with a fault are left out, and the others are not', () => {
    const text = [stringify(written('a')), 'x: [', stringify(written('b', { selector: { matchPattern: '(' } }))].join(
      '\n---\n',
    )
    const { names: found, errors } = read(text)
    expect(found).toEqual(['clusterpulse/a'])
    expect(errors).toContain('document 2 manifest_unreadable')
    expect(errors.some((error) => error.startsWith('clusterpulse/b '))).toBe(true)
  })

  it('that come twice are taken once, and that is said', () => {
    const text = `${stringify(written('a'))}---\n${stringify(written('a'))}`
    expect(read(text)).toMatchObject({ names: ['clusterpulse/a'], errors: ['clusterpulse/a named_twice'] })
  })

  it('survive aliases that would grow without end', () => {
    const bomb = [
      'a: &a [x, x, x, x, x, x, x, x, x]',
      ...'bcdefghi'.split('').map((name, at) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[at]}`)}]`),
    ].join('\n')
    expect(read(bomb)).toMatchObject({ names: [], errors: ['document 1 manifest_unreadable'] })
  })

  it.each(['', '---\n', '# nothing', 'null', '---\n---\n'])('are none in %j', (text) => {
    expect(read(text)).toEqual({ names: [], errors: [], warnings: [] })
  })

  it('never throw, whatever the text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        policiesOfManifest(text, { now })
      }),
    )
    const value = fc.jsonValue()
    fc.assert(
      fc.property(value, value, (metadata, spec) => {
        policiesOfManifest(JSON.stringify({ ...kind, metadata, spec }), { now })
      }),
    )
  })
})
