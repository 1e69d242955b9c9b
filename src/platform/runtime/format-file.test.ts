import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { smallDisk } from '../../../test/small-disk.ts'
import { claimFormat } from './format-file.ts'
import { type Logger, silentLogger } from './logger.ts'

const disk = smallDisk()
afterAll(() => (typeof disk === 'string' ? undefined : disk.unmount()))

describe('the form of a folder', () => {
  let folder = ''
  let said: string[] = []
  const note = (level: string) => (_: object, sentence: string) => void said.push(`${level}: ${sentence}`)
  const logger: Logger = { ...silentLogger, info: note('info'), warn: note('warn'), error: note('error') }
  beforeEach(() => {
    said = []
    folder = mkdtempSync(join(tmpdir(), 'format-'))
    return () => rmSync(folder, { recursive: true, force: true })
  })
  const looked = (format: number, program: string, readableFrom = format) =>
    claimFormat(folder, { what: 'data folder', ours: { format, readableFrom, program }, logger })
  const claim = async (...ours: Parameters<typeof looked>) => (await looked(...ours))()
  const path = (name = 'format') => join(folder, name)
  const text = (name?: string) => readFileSync(path(name), 'utf8')

  it('is written into a new folder without a word, and found the same again', async () => {
    await claim(1, '1.0.0')
    await claim(1, '1.0.0')
    expect(said).toEqual([])
    expect(text()).toContain('"format":1')
    expect(text('format.copy')).toBe(text())
  })

  it('is that of a new folder where nothing is but the key with which an agent joined', async () => {
    mkdirSync(path('identity'))
    await claim(1, '1.0.0')
    expect(said).toEqual([])
    expect(text()).toContain('"format":1')
  })

  it('is not touched by who only looks: another process may have the folder', async () => {
    await claim(1, '1.0.0')
    const before = text()
    await looked(2, '2.0.0')
    expect(text()).toBe(before)
  })

  it('of a folder from before there was one is an upgrade, logged', async () => {
    writeFileSync(path('kubeconfig'), 'x')
    await claim(1, '1.0.0')
    expect(said).toEqual([expect.stringMatching(/^warn: .*upgraded from format 0 .* to 1 \(1\.0\.0\)$/)])
  })

  it('stands in a new folder before anything else, so that a start that is aborted leaves no earlier version', async () => {
    await looked(1, '1.0.0')
    writeFileSync(path('kubeconfig'), 'x')
    await claim(1, '1.0.0')
    expect(said).toEqual([])
    expect(text()).toContain('"format":1')
  })

  it.skipIf(typeof disk === 'string')('is that of the first start where the disk was full then', async () => {
    if (typeof disk === 'string') return
    folder = join(disk.path, 'data')
    mkdirSync(folder)
    disk.fill()
    await looked(1, '1.0.0')
    expect(said).toEqual([expect.stringMatching(/^warn: .*could not be written/)])
    disk.empty()
    writeFileSync(path('kubeconfig'), 'x')
    said = []
    await claim(1, '1.0.0')
    expect(said).toEqual([])
    expect(text()).toContain('"format":1')
    expect(text('format.copy')).toBe(text())
  })

  it('that is later is refused, and nothing is touched', async () => {
    await claim(2, '2.0.0')
    const before = text()
    await expect(claim(1, '1.0.0')).rejects.toThrow(/format 2, written by 2\.0\.0; this is 1\.0\.0/)
    expect(text()).toBe(before)
  })

  it('that is later and readable is warned of at each start, and stays', async () => {
    await claim(2, '2.0.0', 1)
    await claim(1, '1.0.0')
    await claim(1, '1.0.0')
    expect(said.filter((line) => line.startsWith('warn: '))).toHaveLength(2)
    expect(text()).toContain('"format":2')
  })

  it.each(['', 'garbage', '{"format":1,"readableFrom":1,"program":"1.0.0"}\n0\n'])(
    'is mended from its copy where one of both is harmed (%j)',
    async (harm) => {
      await claim(1, '1.0.0')
      const whole = text()
      for (const name of ['format', 'format.copy']) {
        writeFileSync(path(name), harm)
        await claim(1, '1.0.0')
        expect(text(name)).toBe(whole)
      }
    },
  )

  it('is refused where both are harmed: nobody knows who wrote the rest', async () => {
    await claim(1, '1.0.0')
    for (const name of ['format', 'format.copy']) writeFileSync(path(name), 'garbage')
    await expect(claim(1, '1.0.0')).rejects.toThrow(/cannot be read.*Put it back from a copy/)
  })
})
