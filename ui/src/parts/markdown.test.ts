// @vitest-environment jsdom
import { describe, expect, it } from 'vitest'
import { render, renderBlocks } from './markdown'

const HOSTILE = [
  '<script>alert(1)</script>',
  '<img src=x onerror=alert(1)>',
  '![x](https://tracker.example/pixel.png)',
  '[x](javascript:alert(1))',
  '[x](data:text/html,<script>alert(1)</script>)',
  '<a href="javascript:alert(1)">x</a>',
  '<svg onload=alert(1)><use href="https://evil.example#x"/></svg>',
  '<style>body{background:url(https://evil.example)}</style>',
  '<iframe src="https://evil.example"></iframe>',
  '<form action="https://evil.example"><button>Approve</button></form>',
  '<div style="position:fixed;inset:0">cover</div>',
  '<base href="https://evil.example">',
  '<input type="text" name="password">',
  '<math><mtext></mtext><mglyph><style><img src=x onerror=alert(1)></style></mglyph></math>',
  '```html\n<script>alert(1)</script>\n```',
  '[x](vbscript:msgbox(1))',
  '<p class="overlay dialog">x</p>',
  '[![x](https://evil.example/a.png)](javascript:alert(1))',
  '<video autoplay src="https://evil.example/a.mp4"></video>',
  '&lt;script&gt;alert(1)&lt;/script&gt;',
  'See https://evil.example/?q=secret and www.evil.example or a@evil.example.',
  '<https://evil.example/?q=secret> <a@evil.example>',
  '[https://bank.example](https://bank.example@evil.example/?q=secret "bank.example")',
]

describe('the sanitiser', () => {
  it.each(HOSTILE)('makes nothing dangerous of %s', (text) => {
    for (const markup of [render(text), renderBlocks(text).join('')]) {
      const box = document.createElement('div')
      box.innerHTML = markup
      const found = [...box.querySelectorAll('*')]
      const tags = found.map((node) => node.tagName)
      for (const tag of ['SCRIPT', 'STYLE', 'IFRAME', 'SVG', 'MATH', 'FORM', 'BUTTON', 'IMG', 'BASE', 'VIDEO', 'OBJECT', 'EMBED', 'LINK', 'META', 'INPUT']) {
        expect(tags).not.toContain(tag)
      }
      for (const node of found) {
        for (const { name, value } of node.attributes) {
          expect(name.startsWith('on') || name === 'style' || name === 'src' || name === 'id').toBe(false)
          if (name === 'href') expect(value).toMatch(/^(https?:|mailto:)/)
          if (name === 'class') expect(value).toMatch(/^language-/)
        }
      }
    }
  })

  it('keeps what people write', () => {
    expect(render('**bold** and `code`')).toContain('<strong>bold</strong>')
    expect(render('[docs](https://example.org)')).toContain('rel="noopener noreferrer nofollow"')
    expect(render('- [x] done')).toContain('☑ done')
  })

  it('makes no link of an address that merely stands in a text', () => {
    for (const text of ['https://evil.example/?q=1', 'www.evil.example', 'a@evil.example', '<https://evil.example/?q=1>', '<a@evil.example>', '- https://evil.example']) {
      expect(render(text)).not.toContain('<a')
      expect(renderBlocks(text).join('')).not.toContain('<a')
      expect(render(text)).toContain('evil.example')
    }
  })

  it('says where a link leads that is called something else', () => {
    const said = (text: string): string => {
      const box = document.createElement('div')
      box.innerHTML = render(text)
      return box.textContent?.trim() ?? ''
    }
    expect(said('[the manual](https://evil.example/?q=secret)')).toBe('the manual (evil.example)')
    expect(said('[https://bank.example](https://bank.example@evil.example/)')).toBe('https://bank.example (evil.example)')
    expect(said('![a cat](https://evil.example/cat.png)')).toBe('a cat (evil.example)')
    expect(said('[write](mailto:a@evil.example)')).toBe('write (mailto:a@evil.example)')
    expect(said('[bänk](https://bänk.example)')).toBe('bänk (xn--bnk-qla.example)')
    expect(said('[https://example.org/a](https://example.org/a)')).toBe('https://example.org/a')
  })

  it('gives the same pieces for what is already whole while a text grows', () => {
    const before = renderBlocks('First.\n\nSecond is')
    const after = renderBlocks('First.\n\nSecond is longer.')
    expect(after[0]).toBe(before[0])
    expect(after).toHaveLength(2)
  })
})

it('takes formulas for code to be set, and money for money', () => {
  expect(render('It is $a^2$ here.')).toContain('<code class="language-maths">a^2</code>')
  expect(render('$$\\sum_i x_i$$')).toContain('<pre><code class="language-maths">\\sum_i x_i</code></pre>')
  expect(render('From $5 to $10, or US$ 3 and $4.')).not.toContain('maths')
})

it('sets a formula without links, styles or anything that runs', async () => {
  const { mathsOf } = await import('./maths')
  const set = mathsOf('\\frac{a}{b}', true)
  expect(set).toContain('<mfrac>')
  expect(set).not.toContain('style')
  for (const hostile of ['\\href{javascript:alert(1)}{x}', '\\text{<img src=x onerror=alert(1)>}', '\\includegraphics{https://evil.example/x.png}']) {
    const box = document.createElement('div')
    box.innerHTML = mathsOf(hostile, false) ?? ''
    expect(box.querySelectorAll('img, a, script, [href], [src], [onerror], [style]')).toHaveLength(0)
  }
  expect(mathsOf('\\frac{', false)).toBeNull()
})

it('gives a task its own sign in place of a dot', () => {
  expect(render('- [x] done\n- plain').replaceAll('\n', '')).toBe('<ul><li class="language-task">☑ done</li><li>plain</li></ul>')
})
