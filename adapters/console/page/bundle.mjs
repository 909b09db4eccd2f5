// bundle.mjs SOURCES FOLDER OUTPUT: the page in SOURCES, with the packages in FOLDER/node_modules, as C++ in OUTPUT.
import {createRequire} from 'node:module';
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';

const [, , sources, folder, output] = process.argv;
const esbuild = createRequire(join(folder, 'package.json'))('esbuild');

const bundled = await esbuild.build({
    absWorkingDir: sources,
    entryPoints: {page: 'src/main.jsx'},
    outdir: folder,
    nodePaths: [join(folder, 'node_modules')],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: ['chrome100', 'firefox100', 'safari15'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    charset: 'utf8',
    legalComments: 'inline',
    logLevel: 'info',
});

const files = [{path: '/', type: 'text/html; charset=utf-8', bytes: readFileSync(join(sources, 'src/page.html'))}];
for (const file of bundled.outputFiles) {
    const isScript = file.path.endsWith('.js');
    const type = isScript ? 'text/javascript; charset=utf-8' : 'text/css; charset=utf-8';
    files.push({path: isScript ? '/page.js' : '/page.css', type, bytes: Buffer.from(file.contents)});
}

const bytes = files.map((file, i) => {
    // Signed, as char may be.
    const numbers = Array.from(file.bytes, (byte) => (byte > 127 ? byte - 256 : byte));
    const lines = [];
    for (let at = 0; at < numbers.length; at += 40) lines.push('    ' + numbers.slice(at, at + 40).join(',') + ',\n');
    return `constexpr signed char page_file_${i}[] = {\n${lines.join('')}};\n`;
});
const table = files.map((file, i) => {
    const view = `{reinterpret_cast<const char*>(page_file_${i}), sizeof page_file_${i}}`;
    return `        {"${file.path}", "${file.type}", ${view}},\n`;
});
writeFileSync(
    output,
    `// Made by adapters/console/page/bundle.mjs.
#include "serve/page.h"

namespace varve::console::serve {

namespace {

${bytes.join('')}
}  // namespace

std::span<const PageFile> page_files() {
    static const PageFile files[] = {
${table.join('')}    };
    return files;
}

std::string_view why_no_page() {
    return {};
}

}  // namespace varve::console::serve
`,
);
