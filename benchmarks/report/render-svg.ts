import {
  BarChart,
  type BarSeriesOption,
  LineChart,
  type LineSeriesOption,
  ScatterChart,
  type ScatterSeriesOption,
} from "echarts/charts";
import {
  GridComponent,
  type GridComponentOption,
  MarkLineComponent,
  TitleComponent,
  type TitleComponentOption,
} from "echarts/components";
import { type ComposeOption, init, use } from "echarts/core";
import { LabelLayout } from "echarts/features";
import { SVGRenderer } from "echarts/renderers";
import { WIDTH } from "./chart-theme.ts";

type ChartOption = ComposeOption<
  BarSeriesOption | LineSeriesOption | ScatterSeriesOption | GridComponentOption | TitleComponentOption
>;

export interface Chart {
  readonly height: number;
  readonly option: ChartOption;
}

use([
  BarChart,
  LineChart,
  ScatterChart,
  GridComponent,
  MarkLineComponent,
  TitleComponent,
  LabelLayout,
  SVGRenderer,
]);

/** ECharts numbers its charts over the life of the process. */
const GENERATED_ID = /\bzr\d+-/g;
/** What a picture has no use for: hover styles, and what ECharts in a browser would need to take over. */
const FOR_BROWSERS = /<style.*?<\/style>\s*| (?:class|pointer-events|ecmeta_\w+)="[^"]*"/gs;

/**
 * @param name made part of all ids, so that they are the same in the next run, and unique when
 *   charts share a page
 */
export function renderSvg(name: string, { height, option }: Chart): string {
  const chart = init(null, null, { renderer: "svg", ssr: true, width: WIDTH, height });
  try {
    chart.setOption(option);
    const svg = chart.renderToSVGString().replace(FOR_BROWSERS, "").replace(GENERATED_ID, `${name}-`);
    return `${svg}\n`;
  } finally {
    chart.dispose();
  }
}
