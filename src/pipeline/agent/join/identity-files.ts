import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Asking, askingIn, type IdentityStore, type MemberIdentity, memberIn } from './identity.ts'

const ASKING = 'asking.json'
const MEMBER = 'member.json'

/** An identity in a folder: two files of mode 0600. */
export class IdentityFiles implements IdentityStore {
  readonly place: string

  constructor(directory: string) {
    this.place = directory
  }

  async member(): Promise<MemberIdentity | undefined> {
    const content = await this.#read(MEMBER)
    return content === undefined ? undefined : memberIn(content, join(this.place, MEMBER))
  }

  async asking(): Promise<Asking | undefined> {
    const content = await this.#read(ASKING)
    return content === undefined ? undefined : askingIn(content, join(this.place, ASKING))
  }

  async ask(asking: Asking): Promise<void> {
    await this.#write(ASKING, asking)
  }

  async join(identity: MemberIdentity): Promise<void> {
    await this.keep(identity)
    await this.forget()
  }

  async keep(identity: MemberIdentity): Promise<void> {
    await this.#write(MEMBER, identity)
  }

  async forget(): Promise<void> {
    await rm(join(this.place, ASKING), { force: true })
  }

  async #read(name: string): Promise<string | undefined> {
    try {
      return await readFile(join(this.place, name), 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
  }

  async #write(name: string, content: object): Promise<void> {
    await mkdir(this.place, { recursive: true, mode: 0o700 })
    const path = join(this.place, name)
    await rm(`${path}.new`, { force: true })
    const file = await open(`${path}.new`, 'wx', 0o600)
    try {
      await file.writeFile(`${JSON.stringify(content)}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(`${path}.new`, path)
    const folder = await open(this.place, 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  }
}
