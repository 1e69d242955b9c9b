import { expect, it } from 'vitest'
import { slowness } from '../../../platform/runtime/testing/slowness.ts'
import { at, writingOf } from '../testing/contract.ts'
import { manifestText, parseManifest, type SetManifest } from './set-manifest.ts'

const manifestOf = (paths: readonly string[]): SetManifest => ({
  writing: writingOf('west'),
  position: at(1),
  generation: 1,
  exportedAt: '2026-01-01T00:00:00Z',
  complete: true,
  checksum: 'c',
  layout: 'l',
  writer: 'w',
  partTotal: 1,
  paths,
})

it('is read as it was written, with the files of many rows', () => {
  const manifest = manifestOf(Array.from({ length: 100_000 }, (_, i) => `west/[a], {b}/${i}.yaml`))
  expect(parseManifest(manifestText(manifest))).toEqual(manifest)
})

it('is not written where nobody could read it', () => {
  const paths = Array.from({ length: 50_000 }, (_, i) => `${'x'.repeat(700)}${i}`)
  expect(() => manifestText(manifestOf(paths))).toThrow(/has 50000 files, more than the list of them has room for/)
})

it.each(['[],', '{},', '0,', '[', '{"a":'])('costs nothing where somebody put %s there, over and over', (piece) => {
  const text = `{"kind":"KollectExportSetManifest","paths":[${piece.repeat(30_000_000 / piece.length)}`
  const began = performance.now()
  expect(parseManifest(text)).toBeUndefined()
  expect((performance.now() - began) / slowness).toBeLessThan(2000)
})
