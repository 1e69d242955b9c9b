import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const filesUnder = (root: string, ending: RegExp): readonly string[] =>
  readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((name) => ending.test(name))
    .map((name) => join(root, name))

/** The catalogue itself, from which the page of reference is made, produces nothing. */
const CATALOGUE = 'src/contract/http/problems.ts'
const sources = filesUnder('src', /\.ts$/).filter(
  (path) => path !== CATALOGUE && !/\.test\.ts$|\/test(ing)?\/|\.gen\.ts$|_pb\.ts$/.test(path),
)

/** Codes in the columns that are called so. */
function codesIn(path: string): readonly string[] {
  let column: number | undefined
  return readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line) => {
      const cells = line.startsWith('|') ? line.split('|') : []
      if (cells.length === 0) column = undefined
      const head = cells.findIndex((cell) => cell.trim() === 'Code')
      if (head >= 0) column = head
      const cell = column === undefined ? '' : (cells[column] ?? '')
      return [...cell.matchAll(/`([a-z]+(?:_[a-z]+)*)`/g)].map(([, code = '']) => code)
    })
}

it('every error code of the documentation is one that the product says', () => {
  const said = sources.map((path) => readFileSync(path, 'utf8')).join('\n')
  const codes = filesUnder('docs', /\.md$/).flatMap((path) => codesIn(path).map((code) => ({ path, code })))
  expect(codes.length).toBeGreaterThan(60)
  expect(codes.filter(({ code }) => !said.includes(`'${code}'`))).toEqual([])
})
