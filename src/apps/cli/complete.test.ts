import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { kinds } from '#resources'
import { program } from './commands.ts'
import { candidates, completionScript } from './complete.ts'
import { kindWords } from './kind-words.gen.ts'
import { nounNames, nounOf, nouns, nounWords, wordMeant } from './words.ts'

const nobody = new Proxy({}, { get: () => () => Promise.resolve() }) as Parameters<typeof program>[0]
const cli = program(nobody, '0')
const of = (...words: string[]) => candidates(cli, words)

describe('what may stand at the cursor', () => {
  it.each([
    [['g'], ['get']],
    [
      ['access', ''],
      ['explain', 'test', 'help'],
    ],
    [
      ['get', 'n'],
      ['nodes', 'namespaces'],
    ],
    [['get', 'cluster-'], ['cluster-operators']],
    [
      ['get', 'nodes', '-o', ''],
      ['table', 'wide', 'json', 'yaml'],
    ],
    [['get', 'nodes', '--w'], ['--watch']],
    [['completion', 'f'], ['fish']],
    [['up', '--demo', '--se'], ['--seed']],
  ])('after %j: %j', (words, expected) => expect(of(...words).words).toEqual(expected))

  it('is a cluster where one is asked for, and nowhere else', () => {
    expect(of('get', 'nodes', '-c', 'ea').clusters).toBe(true)
    expect(of('get', 'clusters', '').clusters).toBe(true)
    expect(of('get', 'cluster', 'ea').clusters).toBe(true)
    expect(of('connect', '').clusters).toBe(true)
    expect(of('get', 'nodes', '').clusters).toBe(false)
    expect(of('get', '').clusters).toBe(false)
    expect(of('').clusters).toBe(false)
  })

  it('hides what is hidden', () => expect(of('').words).not.toContain('complete'))
})

describe('nouns', () => {
  it('are known in singular and plural', () => {
    for (const noun of nounNames) expect([nounOf(noun), nounOf(nouns[noun])]).toEqual([noun, noun])
    expect(nounOf('Cluster')).toBe('clusters')
    expect(nounOf('pods')).toBeUndefined()
  })

  it('are every kind of row that hubs have', () =>
    expect(kindWords).toEqual(Object.fromEntries(kinds.map(({ typeName, singular }) => [typeName, singular]))))

  it.each([
    ['ndoes', 'nodes'],
    ['clsuter', 'cluster'],
    ['deploy', 'deployments'],
    ['clusteroperators', 'cluster-operators'],
    ['xyz', undefined],
    ['', undefined],
  ])('%j is near %j', (text, near) => expect(wordMeant(text, nounWords)).toBe(near))
})

it.each(['bash', 'zsh', 'fish'] as const)(
  'the script for %s is one that this shell reads (skipped without it)',
  (shell) => {
    const checked = spawnSync(shell, ['-n', '-c', completionScript(shell)], { encoding: 'utf8' })
    if (checked.error) return
    expect(checked.stderr).toBe('')
    expect(checked.status).toBe(0)
  },
)
