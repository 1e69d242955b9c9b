import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import type { Plugin } from 'vite'
import { guideHtml } from './src/pages/guide/markdown.ts'

const docs = join(import.meta.dirname, '../docs')
/** Read in this order by somebody who is new; what is not named follows by name. */
const order = ['guide/first-hour', 'guide/kubernetes-hub', 'guide/push', 'guide/access']

const names = ['guide', 'reference'].flatMap((folder) =>
  readdirSync(join(docs, folder))
    .filter((file) => file.endsWith('.md'))
    .map((file) => `${folder}/${file.slice(0, -3)}`),
)
const rank = (name: string): number => (order.includes(name) ? order.indexOf(name) : order.length)
names.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))

const addressOf = (name: string): string => (name.startsWith('guide/') ? name : `guide/${name}`)

function textOf(name: string) {
  const file = join(docs, `${name}.md`)
  return guideHtml(readFileSync(file, 'utf8'), (target) => {
    if (/^https?:|^#/.test(target)) return target
    const [path = '', anchor] = target.split('#')
    const to = relative(docs, join(dirname(file), path)).replace(/\.md$/, '')
    if (!path.endsWith('.md') || !names.includes(to)) return undefined
    // Relative, so that it holds behind a path prefix too.
    return `${relative(dirname(`/${addressOf(name)}`), `/${addressOf(to)}`)}${anchor === undefined ? '' : `#${anchor}`}`
  })
}

/**
 * The guides as modules of the page, so that a hub serves them without the internet: `virtual:guides` lists them, and each
 * text is a piece of its own that is fetched when it is read.
 */
export const guides = (): Plugin => ({
  name: 'guides',
  resolveId: (id) => (id.startsWith('virtual:guide') ? `\0${id}` : undefined),
  load(id) {
    if (id === '\0virtual:guides') {
      const entries = names.map((name) => {
        this.addWatchFile(join(docs, `${name}.md`))
        const meta = JSON.stringify({ name: addressOf(name).slice('guide/'.length), title: textOf(name).title })
        return `{ ...${meta}, load: () => import('virtual:guide/${name}') }`
      })
      return `export default [${entries.join(',\n')}]`
    }
    const name = /^\0virtual:guide\/(.+)$/.exec(id)?.[1]
    return name === undefined ? undefined : `export default ${JSON.stringify(textOf(name))}`
  },
})
