//! Reports as releases of the database write them in HTML, with figures of nobody's.

fn row(cells: &str, tag: &str) -> String {
    let cells: String = cells
        .split('|')
        .map(|cell| format!("<{tag} class='awrc'>{}</{tag}>", cell.trim().replace('<', "&lt;")))
        .collect();
    format!("<tr>{cells}</tr>\n")
}

/// A table with `|` between its cells; a first line that begins with `^` spans columns: `^ |% of Waits*8`.
pub(super) fn table(lines: &str) -> String {
    let mut html = "<table border=\"0\" class=\"tdiff\" summary=\"This table displays what it displays\">".to_owned();
    let mut columns = 0;
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(spanning) = line.strip_prefix('^') {
            let cell = |cell: &str| match cell.trim().split_once('*') {
                Some((text, columns)) => format!("<th class=\"awrbg\" colspan=\" {columns}\" id=\"x\">{text}</th>"),
                None => "<td>&#160;</td>".to_owned(),
            };
            html += &format!("<tr>\n{}</tr>", spanning.split('|').map(cell).collect::<String>());
        } else {
            html += &row(line, if columns == 0 { "th" } else { "td" }).replace("></td>", ">&#160;</td>");
            columns += 1;
        }
    }
    html + "</table><p />\n"
}

pub(super) fn section(title: &str, lines: &str) -> String {
    let list = "<ul>\n<li class=\"awr\"> ordered by <a class=\"awr\" href=\"#1\">something</a> desc</li>\n</ul>\n";
    format!("<a class=\"awr\" name=\"22\"></a>\n<h3 class=\"awr\">{title}</h3>\n{list}{}", table(lines))
}

/// A part of the summary, whose title stands on the page by itself.
pub(super) fn part(title: &str, lines: &str) -> String {
    format!("<p />{title}<p />\n{}", table(lines))
}

pub(super) fn page(heading: &str, body: &str) -> String {
    format!(
        "<html lang=\"en\"><head><title>AWR Report for DB: X</title>\n<style type=\"text/css\">\nbody.awr {{color:black}}\n\
         th.awrbg > b {{color:white}}\n</style></head><body class=\"awr\">\n<h1 class=\"awr\">\n{heading}\n\n</h1>\n<p />\n\
         {body}<br /><a class=\"awr\" href=\"#top\">Back to Top</a><p />\nEnd of Report\n</body></html>\n"
    )
}

/// What release 12.2 reports on one instance.
pub(super) fn single_12() -> String {
    let header = [
        table("DB Name|DB Id|Unique Name|Role|Edition|Release|RAC|CDB\nSHOP|77001|shop_a|PRIMARY|EE|12.2.0.1.0|NO|NO"),
        table("Instance|Inst Num|Startup Time\nshop1|1|02-May-21 06:30"),
        table("Host Name|Platform|CPUs|Cores|Sockets|Memory (GB)\nbig.box|Linux x86 64-bit|16|8|1|62.50"),
        table(
            "|Snap Id|Snap Time|Sessions|Cursors/Session\nBegin Snap:|41|03-May-21 09:00:10|60|1.1\n\
             End Snap:|42|03-May-21 09:20:30|61|1.2\nElapsed:||20.33 (mins)||\nDB Time:||100.50 (mins)||",
        ),
        "<h3 class=\"awr\">Report Summary</h3>\n".to_owned(),
        part("Load Profile", "|Per Second|Per Transaction\nDB Time(s):|4.9|0.1\nRead IO requests:|1,000.5|2.0"),
        part(
            "IO Profile",
            "|Read+Write Per Second|Read per Second|Write Per Second\nTotal Requests:|1,500.5|1,400.2|100.3\n\
             Redo Requests:|9.0||9.0",
        ),
        part(
            "Cache Sizes",
            "|Begin|End||\nBuffer Cache:|2,048M|2,048M|Std Block Size:|8K\nShared Pool Size:|900M|901M|Log Buffer:|64M",
        ),
        part("Host CPU", "CPUs|Load Average Begin|Load Average End|%User|%WIO|%Idle\n16|0.50|9.25|10.5|3.5|80.0"),
    ];
    let waits = [
        section(
            "Foreground Wait Events",
            "Event|Waits|%Time -outs|Total Wait Time (s)|Avg wait|Waits /txn|% DB time\n\
             db file sequential read|9,000||18|2.01ms|1.5|3.1\nlog file sync|400||0|120.50us|1.0|0.1\n\
             SQL*Net message from client|700||9,000|12857.14ms|1.0|",
        ),
        section(
            "Background Wait Events",
            "Event|Waits|%Time -outs|Total Wait Time (s)|Avg wait|Waits /txn|% bg time\n\
             db file sequential read|1,000||1|1.00ms|1.5|3.1\ndb file parallel write|5|0|0|2.00ms|1.5|3.1",
        ),
        section(
            "Wait Event Histogram",
            "^||% of Total Waits*8\nEvent|Total Waits|<8us|<16us|<32us|<64us|<128us|<256us|<512us|>=512us\n\
             db file parallel write|5||||||20.0|80.0|\ndb file sequential read|10K||||||10.0|30.0|60.0\n\
             latch free|8|100.0|||||||\nlog file sync|400||||||100.0||",
        ),
        section(
            "Wait Event Histogram Detail (512 us to 32 ms)",
            "^||% of Total Waits*8\nEvent|Waits 1ms  to 32ms|<512us|<1ms|<2ms|<4ms|<8ms|<16ms|<32ms|>=32ms\n\
             db file sequential read|5.9K|40.0|9.0|20.0|30.0||||1.0",
        ),
        section(
            "Wait Event Histogram Detail (64 ms to 2 sec)",
            "^||% of Total Waits*8\nEvent|Waits 64ms  to 2s|<32ms|<64ms|<1/8s|<1/4s|<1/2s|<1s|<2s|>=2s\n\
             db file sequential read|100|99.0||1.0|||||",
        ),
    ];
    let rest = [
        section(
            "Time Model Statistics",
            "Statistic Name|Time (s)|% of  DB Time\nDB CPU|1,030.25|17.0\nDB time|6,030.12|",
        ),
        section(
            "Operating System Statistics",
            "Statistic|Value|End Value\nBUSY_TIME|400,000|\nIDLE_TIME|1,600,000|\nIOWAIT_TIME|100,000|\nSYS_TIME|150,000|\n\
             USER_TIME|250,000|\nLOAD|0|9\nPHYSICAL_MEMORY_BYTES|67,108,864,000|",
        ),
        section("SQL ordered by Elapsed Time", "Elapsed  Time (s)|SQL Text\n5.0|select card_number from customers"),
        section(
            "Instance Activity Stats",
            "Statistic|Total|per Second|per Trans\nconsistent gets from cache|70,000|1|1\ndb block changes|3,000|1|1\n\
             db block gets from cache|30,000|1|1\nphysical read IO requests|9,500|1|1\nphysical read bytes|819,200,000|1|1\n\
             physical read total IO requests|11,000|1|1\nphysical reads|100,000|1|1\nphysical reads cache|40,000|1|1\n\
             physical write IO requests|50|1|1\nphysical write bytes|819,200|1|1\nphysical writes|100|1|1\nredo size|5,000|1|1\n\
             redo writes|12|1|1\nsession logical reads|160,000|1|1\nuser commits|33|1|1",
        ),
        section("Instance Activity Stats - Thread Activity", "Statistic|Total|per Hour\nlog switches (derived)|2|5.90"),
        section(
            "IOStat by Function summary",
            "Function Name|Reads: Data|Reqs per sec|Data per sec|Writes: Data|Reqs per sec|Data per sec|Waits: Count|Avg Time\n\
             LGWR|0M|0.00|0M|2G|4.25|1.5M|1.2K|640.50us",
        ),
        section(
            "IOStat by Filetype summary",
            "Filetype Name|Reads: Data|Reqs per sec|Data per sec|Writes: Data|Reqs per sec|Data per sec|Small Read|Large Read\n\
             Data File|1G|10.00|1M|0M|0.00|0M|.25ms|",
        ),
    ];
    page("WORKLOAD REPOSITORY report for", &[header.concat(), waits.concat(), rest.concat()].concat())
}

pub(super) fn cluster_19() -> String {
    let body = [
        part(
            "Database Summary",
            "^Database*8|Snapshot Ids*2|Number of Instances*2|Number of Hosts*2|Report Total (minutes)*2\n\
             Id|Name|Unique Name|Role|Edition|RAC|CDB|Block Size|Begin|End|In Report|Total|In Report|Total|DB time|Elapsed time\n\
             99|DUO|duo|PRIMARY|EE|YES|NO|16384|11|12|2|2|2|2|40.00|10.00",
        ),
        part(
            "Database Instances Included In Report",
            "I#|Instance|Host|Startup|Begin Snap Time|End Snap Time|Release|Elapsed Time(min)|DB time(min)|Platform\n\
             1|duo1|left|05-Jun-22 05:00|06-Jun-22 12:00|06-Jun-22 12:10|19.0.0.0.0|10.00|25.00|Linux x86 64-bit\n\
             2|duo2|right|05-Jun-22 05:01|06-Jun-22 12:00|06-Jun-22 12:10|19.0.0.0.0|9.98|15.00|Linux x86 64-bit",
        ),
        part(
            "Cache Sizes",
            "^|Sga Target*2|DB Cache*2|\nI#|Begin|End|Begin|End|Log Buffer\n1|4,000||3,000||19.4\n2|4,000||1,000||19.4\n\
             Avg|4,000||2,000||19.4",
        ),
        section(
            "OS Statistics By Instance",
            "^|CPU*2|% CPU*2|Time (s)*2|Memory*1\nI#|#CPUs|#Cores|% Busy|% WIO|Busy|Idle|MB\n1|8|4|26.00|1.50|100.25|900.5|64,000\n\
             2|8|4|13.00|2.50|50.00|950.0|64,000\nSum|||||150.25|1,850.5|",
        ),
        section(
            "Time Model",
            "I#|DB time (s)|DB CPU (s)|bg time (s)\n1|1,500.50|200.00|9.0\n2|900.25|100.00|8.0\nSum|2,400.75|300.00|17.0",
        ),
        section("Time Model - % of DB time", "I#|DB CPU\n1|13.3\n2|11.1"),
        section(
            "Foreground Wait Events (Global)",
            "^Wait*2|Event*2|Wait Time*3|Summary Avg Wait Time*4\n\
             Class|Event|Waits|%Timeouts|Total(s)|Avg Wait|%DB time|Avg|Min|Max|Std Dev\n\
             User I/O|db file sequential read|4,812,345|0.00|9,624.69|2.00ms|40.0|2.0ms|1.9ms|2.1ms|1us\n\
             Other|odd new event|3|0.00|0.00|5.00us|0.0|5us|5us|5us|",
        ),
        section(
            "Background Wait Events (Global)",
            "^Wait*2|Event*2|Wait Time*3|Summary Avg Wait Time*4\n\
             Class|Event|Waits|%Timeouts|Total(s)|Avg Wait|%bg time|Avg|Min|Max|Std Dev\n\
             |background cpu time||||15.00||0.4|||\nSystem I/O|log file parallel write|50|0.00|0.10|2.00ms|0.1|2ms|2ms|2ms|",
        ),
        section(
            "Wait Event Histogram (Global)",
            "^||% of Total Waits*8\nEvent|Waits|<512us|<1ms|<2ms|<4ms|<8ms|<16ms|<1s|>=1s\n\
             db file sequential read|4.8M|0.0(122)|10.0|20.0|60.0|9.9|0.1||0.0(1)\nlog file parallel write|50||||100.0||||",
        ),
        section(
            "System Statistics",
            "I#|Logical Reads|Physical Reads|Physical Writes|Redo Size (k)|Block Changes|Txns\n1|9,000|4,000|300|10|20|5\n\
             2|8,000|3,000|200|20|30|6\nSum|17,000|7,000|500|30|50|11",
        ),
        section(
            "System Statistics - Per Second",
            "I#|Physical Reads/s|Physical Writes/s\n1|6.67|0.51\n2|5.01|0.33\nSum|11.68|0.84\nAvg|5.84|0.42",
        ),
        section(
            "System Statistics (Global)",
            "^||||per Second*4\nStatistic|Total|per Second|per Trans|Average|Std Dev|Min|Max\n\
             physical reads|7,000|11.68|1|1|1|1|1\nphysical read IO requests|6,900|11.5|1|1|1|1|1",
        ),
        section(
            "Global Messaging Statistics (Global)",
            "^||||per Second*4\nStatistic|Total|per Second|per Trans|Average|Std Dev|Min|Max\nphysical reads|1|1|1|1|1|1|1",
        ),
        section(
            "System Statistics (Absolute Values)",
            "^|Sessions*2|Open Cursors*2\nI#|Begin|End|Begin|End\n1|90|91|1|1\n2|80|82|1|1\nSum|1,170|173|2|2",
        ),
        section("IO Profile (Global)", "Statistic|Read+Write/s|Reads/s|Writes/s\nTotal Requests|20.50|15.25|5.25"),
        section(
            "IOStat by Function",
            "^||Requests*2|MB*2||\nI#|Function Name|Total|Reads/s|Total|Read MB/s|Waits: Count|Avg Time\n\
             *|DBWR|1,200|0.50|64|0.25|7M|1.50ms\n1|DBWR|600|0.25|32|0.12|3M|1.50ms",
        ),
    ];
    page("WORKLOAD REPOSITORY REPORT (RAC)", &body.concat())
}
