import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, describe, expect, it } from 'vitest'

const script = new URL('../scripts/version.js', import.meta.url)

describe('the version of a build', () => {
  let root = ''
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'version-'))
    mkdirSync(join(root, 'src'))
    mkdirSync(join(root, 'scripts'))
    cpSync(script, join(root, 'scripts/version.js'))
    writeFileSync(join(root, 'package.json'), '{"version":"1.2.3"}')
    writeFileSync(join(root, 'src/a.ts'), 'export {}')
    return () => rmSync(root, { recursive: true, force: true })
  })
  const git = (...words: string[]) =>
    execFileSync('git', ['-C', root, '-c', 'user.name=a', '-c', 'user.email=a@b.c', ...words], { encoding: 'utf8' })
  const version = async (environment: object = {}): Promise<string> => {
    const { buildVersion } = (await import(script.href)) as { buildVersion(root: string, env: object): string }
    return buildVersion(root, environment)
  }

  it('names the commit', async () => {
    git('init', '-q')
    git('add', '.')
    git('commit', '-qm', 'a')
    expect(await version()).toBe(`1.2.3+${git('rev-parse', '--short=12', 'HEAD').trim()}`)
  })

  it('tells apart what is not committed', async () => {
    git('init', '-q')
    git('add', '.')
    git('commit', '-qm', 'a')
    const clean = await version()
    writeFileSync(join(root, 'src/a.ts'), 'export const a = 1')
    const one = await version()
    writeFileSync(join(root, 'src/a.ts'), 'export const a = 2')
    const other = await version()
    expect(new Set([clean, one, other]).size).toBe(3)
    expect(one).toMatch(/^1\.2\.3\+[0-9a-f]{12}\.[0-9a-f]{8}$/)
  })

  it('is made of the sources where there is no git', async () => {
    const one = await version()
    expect(one).toMatch(/^1\.2\.3\+src\.[0-9a-f]{12}$/)
    expect(await version()).toBe(one)
    writeFileSync(join(root, 'src/a.ts'), 'export const a = 1')
    expect(await version()).not.toBe(one)
  })

  it('takes the commit that it is given, and refuses what is none', async () => {
    expect(await version({ GIT_COMMIT: 'ABCDEF0123456789' })).toBe('1.2.3+abcdef012345')
    await expect(version({ GIT_COMMIT: 'main' })).rejects.toThrow(/GIT_COMMIT=main is no commit/)
  })
})
