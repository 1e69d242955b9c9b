import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { cpuMs } from '../../../test/cpu.ts'
import { policiesOfForeignManifest, policiesOfManifest } from './manifest.ts'
import { names, policy } from './testing/words.ts'

const now = Date.UTC(2026, 0, 1)
const kind = { apiVersion: 'clusterpulse.io/v1alpha1', kind: 'MonitorAccessPolicy' }
const written = (name: string, rule: object = names('west')) => ({
  ...kind,
  ...policy('Allow', [rule as never], { name }),
})
const read = async (text: string) => {
  const { policies, findings } = policiesOfManifest(text, { now })
  const foreign = await policiesOfForeignManifest(text, { now })
  expect([foreign.policies, foreign.findings]).toEqual([policies, findings])
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
  it('are read from many documents, from JSON, and from a list', async () => {
    const many = `${stringify(written('a'))}\n---\n${stringify(written('b'))}`
    expect((await read(many)).names).toEqual(['clusterpulse/a', 'clusterpulse/b'])
    expect((await read(JSON.stringify(written('a')))).names).toEqual(['clusterpulse/a'])
    const list = { apiVersion: 'v1', kind: 'List', items: [written('a'), { kind: 'Secret' }, 7] }
    expect(await read(stringify(list))).toMatchObject({
      names: ['clusterpulse/a'],
      warnings: ['document 1, item 2 not_a_policy', 'document 1, item 3 not_a_policy'],
    })
  })

  it('take the namespace they name, and the given one where they name none', async () => {
    const { metadata, ...rest } = written('a')
    const text = (namespace?: string) =>
      stringify({ ...rest, metadata: { name: metadata.name, ...(namespace && { namespace }) } })
    expect((await read(text('team'))).names).toEqual(['team/a'])
    expect(policiesOfManifest(text(), { now, namespace: 'hub' }).policies).toMatchObject([{ namespace: 'hub' }])
  })

  it('with a fault are left out, and the others are not', async () => {
    const text = [stringify(written('a')), 'x: [', stringify(written('b', { selector: { matchPattern: '(' } }))].join(
      '\n---\n',
    )
    const { names: found, errors } = await read(text)
    expect(found).toEqual(['clusterpulse/a'])
    expect(errors).toContain('document 2 manifest_unreadable')
    expect(errors.some((error) => error.startsWith('clusterpulse/b '))).toBe(true)
  })

  it('that come twice are taken once, and that is said', async () => {
    const text = `${stringify(written('a'))}---\n${stringify(written('a'))}`
    expect(await read(text)).toMatchObject({ names: ['clusterpulse/a'], errors: ['clusterpulse/a named_twice'] })
  })

  it('survive aliases that would grow without end', async () => {
    const bomb = [
      'a: &a [x, x, x, x, x, x, x, x, x]',
      ...'bcdefghi'.split('').map((name, at) => `${name}: &${name} [${Array(9).fill(`*${'abcdefgh'[at]}`)}]`),
    ].join('\n')
    expect(await read(bomb)).toMatchObject({ names: [], errors: ['document 1 manifest_unreadable'] })
  })

  it.each(['', '---\n', '# nothing', 'null', '---\n---\n'])('are none in %j', async (text) => {
    expect(await read(text)).toEqual({ names: [], errors: [], warnings: [] })
  })

  it.each([
    ['lists in lists', '['.repeat(200_000), 'manifest_unreadable'],
    ['lists in block lists', '- '.repeat(60_000), 'manifest_unreadable'],
    ['maps in maps', '{a: '.repeat(60_000), 'manifest_unreadable'],
    ['many keys', Array.from({ length: 7_000 }, (_, at) => `k${at}: x`).join('\n'), 'not_a_policy'],
    ['many anchors', Array.from({ length: 15_000 }, (_, at) => `k${at}: &a${at} x`).join('\n'), 'manifest_unreadable'],
    ['one long document', 'a: b\n'.repeat(200_000), 'manifest_unreadable'],
    ['very many documents', '---\na\n'.repeat(6000), 'manifest_unreadable'],
    ['nothing but beginnings', `${'---\n'.repeat(200_000)}a`, 'not_a_policy'],
  ])('do not hold up the server with %s', async (_, text, code) => {
    const began = process.cpuUsage()
    const { policies, findings } = await policiesOfForeignManifest(text, { now })
    expect(policies).toEqual([])
    expect(findings.at(-1)?.finding.code).toBe(code)
    expect(cpuMs(began)).toBeLessThan(5000)
  })

  it('never throw, whatever the text', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string(), async (text) => {
        await policiesOfForeignManifest(text, { now })
      }),
    )
    const value = fc.jsonValue()
    await fc.assert(
      fc.asyncProperty(value, value, async (metadata, spec) => {
        await policiesOfForeignManifest(stringify({ ...kind, metadata, spec }), { now })
      }),
    )
  })
})
